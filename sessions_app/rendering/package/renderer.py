"""`renderers:FAMILY`: a hand-written family of the package `renderers`.

Its bridge continues served ids by itself. Invariants: the bridge sees only the last turn and a short piece
of what stands before it, so its cost does not grow with the history; what it would drop of the served ids
beyond one boundary token is a refusal, and so is everything that it refuses itself.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from sessions_app.errors import InvalidTemplateKwargs, TemplateError
from sessions_app.rendering.clones import Clones
from sessions_app.rendering.comparator import ComparisonRules, Mismatch, compare
from sessions_app.rendering.package import catalogue
from sessions_app.rendering.package.messages import package_messages
from sessions_app.rendering.package.tokenizer import PackageTokenizer
from sessions_app.rendering.parsers.package import called
from sessions_app.rendering.parsers.reply import before_stop, ill_formed, well_formed
from sessions_app.rendering.preparation import canonical, wrapped_tools
from sessions_app.rendering.protocol import Extension, Ids, Message, ParsedReply, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer, ids_array

_REFUSED = "renderer_refused"
_LEFT_OF_TURN = 64
"""Ids in front of the generation prompt that the bridge gets to see."""
_USER: Message = {"role": "user", "content": "dummy user"}
_SPOKEN: Message = {"role": "assistant", "content": "x"}
_ROLES: Mapping[str, Message] = {
    "system": {"role": "system", "content": "x"},
    "tool": {"role": "tool", "content": "x", "tool_call_id": "call00001", "name": "probe"},
    "user": {"role": "user", "content": "x"},
}


class PackageRenderer:
    """See module."""

    def __init__(self, tokenizer: ChatTokenizer, family: str, kwargs: Mapping[str, Any]) -> None:
        self.tokenizer = tokenizer
        self.name = f"renderers:{family}"
        self.launch_kwargs_name = self.name
        self.template_kwargs: Mapping[str, Any] = dict(kwargs)
        self._family = family
        self._inner = catalogue.make(family, PackageTokenizer(tokenizer), dict(kwargs))
        self.vocab_size = tokenizer.vocab_size
        self.tokenizer_fingerprint = tokenizer.fingerprint
        self.template_fingerprint = _digest(["renderers", catalogue.version(), family])
        self.fingerprint = _digest([tokenizer.fingerprint, self.template_fingerprint, self.template_kwargs])
        self.stop_token_ids = frozenset(int(number) for number in self._inner.get_stop_token_ids())
        self._prompt = self._rendered([_USER], None, True)
        self._spoken = self._rendered([_USER, _SPOKEN], None, False)
        self._told = self._prompt[: _common(self._rendered([_USER], None, False), self._prompt)]
        self._header = self._generation_header()
        self.max_trim_tokens = 1
        self.append_roles = frozenset(role for role, message in _ROLES.items() if self._appends(message))
        self.comparison = self._comparison()
        self._clones: Clones[Self] = Clones()

    def with_kwargs(self, overrides: Mapping[str, Any] | None) -> Self:
        """See Renderer."""
        if overrides is None:
            return self
        if not isinstance(overrides, Mapping):
            raise InvalidTemplateKwargs("chat_template_kwargs must be an object")
        merged = {**self.template_kwargs, **overrides}
        return self if merged == self.template_kwargs else self._clones.get(merged, self._with)

    def _with(self, kwargs: Mapping[str, Any]) -> Self:
        try:
            return type(self)(self.tokenizer, self._family, kwargs)
        except ValueError as error:
            raise InvalidTemplateKwargs(str(error)) from error

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None, *, add_generation_prompt: bool = True
    ) -> Ids:
        """See Renderer."""
        return ids_array(self._rendered(messages, wrapped_tools(tools), add_generation_prompt))

    def _rendered(
        self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, add_generation_prompt: bool
    ) -> list[int]:
        prepared = package_messages(messages)
        try:
            ids: list[int] = self._inner.render_ids(
                prepared, tools=tools, add_generation_prompt=add_generation_prompt
            )
        except Exception as error:
            raise TemplateError(str(error) or type(error).__name__) from error
        return ids

    def extend(
        self,
        served: Ids,
        last_message: Message,
        new_messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> Extension:
        """See Renderer. The bridge closes a turn that was cut by itself."""
        start = self._start_of_turn(served)
        left = served[max(0, start - self._header.size - _LEFT_OF_TURN) : start].tolist()
        turn = served[start:].tolist()
        return self._extension([*left, *turn], self._bridged(left, turn, new_messages, tools))

    def _bridged(
        self, left: list[int], turn: list[int], new: Sequence[Message], tools: Sequence[Tool] | None
    ) -> Any:
        prepared = package_messages(new)
        try:
            bridged = self._inner.bridge_to_next_turn(left, turn, prepared, tools=wrapped_tools(tools))
        except Exception as error:
            raise RendererRefused(_REFUSED, f"{self.name}: {type(error).__name__}") from error
        if bridged is None:
            raise RendererRefused(_REFUSED, f"{self.name} cannot continue this turn")
        return bridged

    def _extension(self, before: list[int], bridged: Any) -> Extension:
        """Ids behind what the bridge kept; those that belong to no new message are the glue."""
        ids = list(bridged.token_ids)
        kept = _common(before, ids)
        if len(before) - kept > self.max_trim_tokens:
            raise RendererRefused(_REFUSED, f"{self.name} would drop {len(before) - kept} served tokens")
        owners = list(bridged.message_indices)[kept:]
        glue = next((index for index, owner in enumerate(owners) if owner >= 0), 0)
        return Extension(
            len(before) - kept, ids_array(ids[kept : kept + glue]), ids_array(ids[kept + glue :])
        )

    def head_text(self, tools: Sequence[Tool] | None) -> str:
        """See Renderer."""
        return self.decode(self._rendered([_USER], canonical(wrapped_tools(tools)), False))

    def parse(self, completion: Ids, tools: Sequence[Tool] | None) -> ParsedReply:
        """See Renderer."""
        text = self.decode(before_stop(completion, self.stop_token_ids))
        try:
            parsed = self._inner.parse_response(
                completion.tolist(), tools=wrapped_tools(tools), prompt_ids=self._prompt
            )
            calls = [called(call) for call in parsed.tool_calls]
        except Exception:
            return ill_formed(text)
        return well_formed(parsed.content or "", parsed.reasoning_content or None, calls)

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """See Renderer."""
        return self.tokenizer.decode(ids)

    def compare(self, expected: Ids, actual: Ids) -> list[Mismatch]:
        """See Renderer."""
        return compare(expected.tolist(), actual.tolist(), self.comparison, self.decode)

    def _generation_header(self) -> Ids:
        """The ids that open an assistant turn both in a prompt and inside a history."""
        opened = self._prompt[len(self._told) :]
        inside = self._spoken[len(self._told) :]
        return ids_array(opened[: _common(opened, inside)])

    def _start_of_turn(self, served: Ids) -> int:
        """Where the last completion begins: behind the last header."""
        size = self._header.size
        starts = np.flatnonzero(served == self._header[0]) if size else ()
        for position in reversed(starts):
            if np.array_equal(served[position : position + size], self._header):
                return int(position) + size
        raise RendererRefused(_REFUSED, f"{self.name}: the last turn cannot be found")

    def _appends(self, message: Message) -> bool:
        """Whether the bridge takes a message of this role behind a turn of text."""
        start = len(self._told) + self._header.size
        try:
            self._bridged(self._prompt[:start], self._spoken[start : self._last_mark() + 1], [message], None)
        except RendererRefused:
            return False
        return True

    def _last_mark(self) -> int:
        """Position of the last special token of a turn of text, or of its last id."""
        marks = [i for i, number in enumerate(self._spoken) if number in self.stop_token_ids]
        return marks[-1] if marks else len(self._spoken) - 1

    def _comparison(self) -> ComparisonRules:
        """Tails differ in the stop tokens that open the next message and in the text behind a stop token."""
        closed = self._spoken[self._last_mark()] in self.stop_token_ids
        trailing = frozenset(self._spoken[self._last_mark() + 1 :]) if closed else self.stop_token_ids
        return ComparisonRules(self.tokenizer.special_ids, trailing, self.decode(self._header))


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
