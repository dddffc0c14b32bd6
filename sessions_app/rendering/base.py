"""What every renderer over a chat template shares: identity, kwargs, full renders, parsing, decoding.

Not here: how served ids are continued; that is what the subclasses differ in. Invariant: a renderer is
immutable; a request's kwargs make another renderer, which is kept and shared.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from sessions_app.errors import InvalidTemplateKwargs
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.clones import Clones
from sessions_app.rendering.comparator import ComparisonRules, Mismatch, compare
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.parsers.think import opens_reasoning
from sessions_app.rendering.prompt_text import PromptText
from sessions_app.rendering.protocol import Ids, Message, ParsedReply, Tool
from sessions_app.rendering.spelling import Spelling
from sessions_app.rendering.tokenizer import ChatTokenizer

_RESERVED = frozenset({"messages", "tools", "add_generation_prompt", "raise_exception", "strftime_now"})


class TemplateRendererBase(ABC):
    """One tokenizer, one chat template, one set of kwargs."""

    name: str
    launch_kwargs_name: str
    max_trim_tokens: int
    stop_token_ids: frozenset[int]
    append_roles: frozenset[str]
    comparison: ComparisonRules
    constants: Mapping[str, Any]

    def __init__(
        self, tokenizer: ChatTokenizer, template: ChatTemplate, parser: ReplyParser, kwargs: Mapping[str, Any]
    ) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.parser = parser
        self.template_kwargs: Mapping[str, Any] = self._merged(kwargs, {})
        self.vocab_size = tokenizer.vocab_size
        self.tokenizer_fingerprint = tokenizer.fingerprint
        self.template_fingerprint = template.fingerprint
        self.fingerprint = self._fingerprint()
        self._clones: Clones[Self] = Clones()
        self._text = self._prompt_text({**tokenizer.template_variables, **self.template_kwargs})
        self._reasoning_opened = opens_reasoning(self._text.generation_prompt() or "")

    @abstractmethod
    def _prompt_text(self, variables: Mapping[str, Any]) -> PromptText:
        """The template as this kind of renderer runs it."""

    def _fingerprint(self) -> str:
        parts = [self.tokenizer_fingerprint, self.template_fingerprint, self.name, self.template_kwargs]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    def with_kwargs(self, overrides: Mapping[str, Any] | None) -> Self:
        """See Renderer."""
        if overrides is None:
            return self
        if not isinstance(overrides, Mapping):
            raise InvalidTemplateKwargs("chat_template_kwargs must be an object")
        merged = self._merged(self.template_kwargs, overrides)
        return self if merged == self.template_kwargs else self._clones.get(merged, self._with)

    def _merged(self, launch: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Launch kwargs, overlaid with a request's, checked against the family's constants."""
        effective = {**launch, **overrides}
        if reserved := sorted(_RESERVED & effective.keys()):
            raise InvalidTemplateKwargs(f"chat template kwarg {reserved[0]} is reserved")
        for key, constant in self.constants.items():
            if key in effective and effective[key] != constant:
                raise InvalidTemplateKwargs(
                    f"chat template kwarg {key}={effective[key]!r} conflicts with the value registered for "
                    f"{self.launch_kwargs_name}: {constant!r}"
                )
        return {**effective, **self.constants}

    def _with(self, kwargs: Mapping[str, Any]) -> Self:
        """A new renderer of the same kind with these effective kwargs."""
        return type(self)(self.tokenizer, self.template, self.parser, kwargs)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        add_generation_prompt: bool = True,
        when: datetime | None = None,
    ) -> Ids:
        """See Renderer."""
        return self.tokenizer.encode(self._text_at(when, messages, tools, add_generation_prompt))

    def _text_at(
        self,
        when: datetime | None,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        add_generation_prompt: bool,
    ) -> str:
        clock = when.astimezone().strftime if when else None
        return self._text(messages, tools, add_generation_prompt=add_generation_prompt, clock=clock)

    def mismatches(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        served: Ids,
        when: datetime | None = None,
    ) -> list[Mismatch]:
        """See Renderer."""
        text = self._text_at(when, messages, tools, add_generation_prompt=False)
        if self._spelling.spells(served, text):
            return []
        return self.compare(self.tokenizer.encode(text), served)

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.tokenizer, self.comparison)

    def head_text(self, tools: Sequence[Tool] | None) -> str:
        """See Renderer."""
        return self._text.head(tools)

    def parse(self, completion: Ids, tools: Sequence[Tool] | None) -> ParsedReply:
        """See Renderer."""
        return self.parser.parse(
            completion, tools, self.stop_token_ids, self.decode, opened=self._reasoning_opened
        )

    def encode(self, text: str) -> Ids:
        """See Renderer."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """See Renderer."""
        return self.tokenizer.decode(ids)

    def compare(self, expected: Ids, actual: Ids) -> list[Mismatch]:
        """Differences between a fresh render and the served ids of the same messages."""
        return compare(expected.tolist(), actual.tolist(), self.comparison, self.decode)
