"""What a renderer is: the only owner of the way from messages to ids and back.

Not here: which ids were served before (that is the turn's business) and where a request attaches
(history). Invariant: nothing a renderer returns for new messages depends on a re-render or a
re-tokenisation of the matched history; `extend` costs what the new messages cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sessions_app.rendering.comparator import ComparisonRules, Mismatch

Message = Mapping[str, Any]
"""One chat message as parsed from JSON; never changed in place."""

Tool = Mapping[str, Any]
"""One tool definition as the client sent it."""

Ids = npt.NDArray[np.int32]
"""Token ids, shape (n,), int32, C-contiguous and read-only where they are stored."""


@dataclass(frozen=True, slots=True)
class Extension:
    """How a checkpoint is continued: `served[: len(served) - trim]`, then `glue`, then `delta`."""

    trim: int
    """Ambiguous boundary ids dropped from the end of the served ids; 0 to `max_trim_tokens`."""
    glue: Ids
    """What is left to add of the template's close of the last turn, after what was served already of it."""
    delta: Ids
    """The new messages and the generation prompt. Tokenised with the glue as one block where the renderer
    can."""

    @property
    def ids(self) -> Ids:
        """Glue and delta as one array."""
        return np.concatenate([self.glue, self.delta]) if self.glue.size else self.delta


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What the sampled ids say, for engines that return ids only."""

    message: dict[str, Any]
    """OpenAI-shaped assistant message: role, content, and where present reasoning_content and tool_calls."""
    ill_formed: bool
    """The text broke the tool-call or reasoning grammar: the whole decoded text without the stop token is the
    content, there are no tool calls and no reasoning. The tokens are kept all the same."""


class RendererRefused(Exception):
    """A history that this renderer cannot continue token by token; the caller falls back to a full render.

    cause: one of `close_unresolved`, `template_not_append_only`, `renderer_refused` (contract 4).
    """

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


class Renderer(Protocol):
    """One tokenizer, one template, one set of template kwargs. Immutable and safe to share between
    threads."""

    name: str
    """As in TITO_RENDERER, e.g. `template:qwen3`."""
    fingerprint: str
    """Hex digest over tokenizer, template, family and kwargs: equal fingerprints render equal ids."""
    template_fingerprint: str
    tokenizer_fingerprint: str
    vocab_size: int
    """Ids served or sampled are below this number (added tokens included)."""
    max_trim_tokens: int
    stop_token_ids: frozenset[int]
    append_roles: frozenset[str]
    """Roles that may follow a generated turn."""
    template_kwargs: Mapping[str, Any]
    """The effective kwargs: launch kwargs, family constants, request overrides."""
    comparison: ComparisonRules
    """What stands alone, what is ignored at the tails, and how an assistant's turn begins."""
    launch_kwargs_name: str
    """Class name shown in the contract's kwarg-conflict text, e.g. `Qwen3TITOTokenizer`."""

    def with_kwargs(self, overrides: Mapping[str, Any] | None) -> "Renderer":
        """The same renderer under a request's `chat_template_kwargs` (None and {} mean no override).

        Raises sessions_app.errors.InvalidTemplateKwargs when an override contradicts a family constant.
        """
        ...

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        add_generation_prompt: bool = True,
        when: datetime | None = None,
    ) -> Ids:
        """A full render from scratch. `when`: what a template that prints the time is told; None = now.

        Raises errors.TemplateError / InvalidTools / InvalidMessages."""
        ...

    def extend(
        self,
        served: Ids,
        last_message: Message,
        new_messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> Extension:
        """What to add to `served`, which ends with the generated turn whose message is `last_message`.

        `new_messages` may be empty: only the generation prompt is added. `cut`: the turn ended by length
        and is continued after the template's own close. Raises RendererRefused, errors.TemplateError,
        errors.InvalidTools, errors.InvalidMessages.
        """
        ...

    def head_text(self, tools: Sequence[Tool] | None) -> str:
        """The rendered head of a fixed dummy conversation up to its first user turn, with canonically ordered
        schemas: equal texts mean that tools and kwargs show the engine the same head."""
        ...

    def parse(self, completion: Ids, tools: Sequence[Tool] | None) -> ParsedReply:
        """The assistant message that the sampled ids spell. Never raises on what a model can produce."""
        ...

    def encode(self, text: str) -> Ids:
        """Ids of a text that stands alone; special tokens in it become their ids, none is added."""
        ...

    def decode(self, ids: Ids) -> str:
        """Text of ids, special tokens kept."""
        ...

    def compare(self, expected: Ids, actual: Ids) -> list[Mismatch]:
        """Where served ids differ from those of a fresh render, by the family's rules."""
        ...

    def mismatches(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        served: Ids,
        when: datetime | None = None,
    ) -> list[Mismatch]:
        """What `compare` finds between `served`, the ids of a path, and a render of its messages at `when`,
        without a generation prompt. Slow: renders the whole path. Raises what `render` raises."""
        ...
