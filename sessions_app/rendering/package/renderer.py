"""`renderers:FAMILY`: a hand-written family of the package `renderers`.

Its bridge continues served ids by itself; it is believed where it spells what the family renders, which is
tried on dummy turns. Elsewhere, and where it refuses, the seam is read off the family's renders. Invariants:
neither sees more of the history than the last turn and a short piece before it, so the cost does not grow
with the history; no more than one boundary token of the served ids is dropped.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np

from sessions_app.errors import InvalidTemplateKwargs, TemplateError
from sessions_app.rendering.clones import Clones
from sessions_app.rendering.comparator import ComparisonRules, Mismatch, compare
from sessions_app.rendering.dummy import ONE_CALL, SENTINEL, TEXT_TURN, TOOL, calls_of, results_of
from sessions_app.rendering.joining import Joint
from sessions_app.rendering.package import catalogue
from sessions_app.rendering.package.bridge import MOST_TRIMMED, FamilyBridge, common_ids
from sessions_app.rendering.package.harmony import HARMONY, provide_vocabulary
from sessions_app.rendering.package.kwargs import for_package, overlaid
from sessions_app.rendering.package.messages import package_messages
from sessions_app.rendering.package.seams import FamilySeams
from sessions_app.rendering.package.tokenizer import PackageTokenizer
from sessions_app.rendering.parsers.package import called
from sessions_app.rendering.parsers.reply import before_stop, ill_formed, well_formed
from sessions_app.rendering.parsers.think import closing_of
from sessions_app.rendering.preparation import canonical, wrapped_tools
from sessions_app.rendering.protocol import Extension, Ids, Message, ParsedReply, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer, ids_array

_ANY_DAY = "2000-01-01"
"""The day of dummy conversations and heads: what is learned from them holds on every day."""
_USER: Message = {"role": "user", "content": "dummy user"}
_SPOKEN: Message = {"role": "assistant", "content": "x"}
_ROLES: Mapping[str, Message] = {
    "assistant": {"role": "assistant", "content": "dummy answer"},
    "system": {"role": "system", "content": "dummy system"},
    "tool": results_of(ONE_CALL)[0],
    "user": _USER,
}


class PackageRenderer:
    """See module."""

    def __init__(self, tokenizer: ChatTokenizer, family: str, kwargs: Mapping[str, Any]) -> None:
        self.tokenizer = tokenizer
        self.name = f"renderers:{family}"
        self.launch_kwargs_name = self.name
        self.template_kwargs: Mapping[str, Any] = overlaid(family, {}, kwargs)
        self._family = family
        if family == HARMONY:
            provide_vocabulary(tokenizer)
        self._inner = catalogue.make(
            family, PackageTokenizer(tokenizer), for_package(family, self.template_kwargs)
        )
        self.vocab_size = tokenizer.vocab_size
        self.tokenizer_fingerprint = tokenizer.fingerprint
        self.template_fingerprint = _digest(["renderers", catalogue.version(), family])
        self.fingerprint = _digest([tokenizer.fingerprint, self.template_fingerprint, self.template_kwargs])
        self.stop_token_ids = frozenset(int(number) for number in self._inner.get_stop_token_ids())
        self._prompt = self._rendered([_USER], None, True)
        self._spoken = self._rendered([_USER, _SPOKEN], None, False)
        self._told = self._prompt[: common_ids(self._rendered([_USER], None, False), self._prompt)]
        self._header = self._generation_header()
        self._bridge = FamilyBridge(self._inner, self.name, self._header, self.stop_token_ids)
        self.max_trim_tokens = MOST_TRIMMED
        self._seams = FamilySeams(
            self._wrapped, self.decode, self.stop_token_ids, self._prompt[len(self._told) :]
        )
        self._joint = self._how_turns_end()
        self._believed = frozenset(
            (calls, ended)
            for calls in (False, True)
            for ended in (False, True)
            if self._bridges(calls, ended)
        )
        self.append_roles = frozenset(role for role, message in _ROLES.items() if self._appends(message))
        self.comparison = self._comparison()
        self._clones: Clones[Self] = Clones()

    def with_kwargs(self, overrides: Mapping[str, Any] | None) -> Self:
        """See Renderer."""
        if overrides is None:
            return self
        if not isinstance(overrides, Mapping):
            raise InvalidTemplateKwargs("chat_template_kwargs must be an object")
        merged = overlaid(self._family, self.template_kwargs, overrides)
        return self if merged == self.template_kwargs else self._clones.get(merged, self._with)

    def _with(self, kwargs: Mapping[str, Any]) -> Self:
        try:
            return type(self)(self.tokenizer, self._family, kwargs)
        except ValueError as error:
            raise InvalidTemplateKwargs(str(error)) from error

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        add_generation_prompt: bool = True,
        when: datetime | None = None,
    ) -> Ids:
        """See Renderer."""
        day = (when or datetime.now()).astimezone().strftime("%Y-%m-%d")
        return ids_array(self._rendered(messages, wrapped_tools(tools), add_generation_prompt, day))

    def _rendered(
        self,
        messages: Sequence[Message],
        tools: list[dict[str, Any]] | None,
        add_generation_prompt: bool,
        day: str = _ANY_DAY,
    ) -> list[int]:
        prepared = package_messages(messages)
        try:
            ids: list[int] = catalogue.of_day(self._inner, day).render_ids(
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
        """See Renderer."""
        kind = (bool(calls_of(last_message)), bool(served.size) and int(served[-1]) in self.stop_token_ids)
        if not cut and kind in self._believed:
            try:
                extension = self._bridge.over(served, new_messages, tools)
            except RendererRefused:
                pass
            else:
                if not self._keeps_wrong_opener(served, extension):
                    return extension
        return self._by_rendering(served, last_message, new_messages, tools, cut=cut)

    def _keeps_wrong_opener(self, served: Ids, extension: Extension) -> bool:
        """The turn ended with the opener of another message than the one that follows."""
        ids, openers = extension.ids, self._joint.openers
        if extension.trim or not ids.size or not served.size:
            return False
        return int(served[-1]) in openers and int(ids[0]) in openers

    def _by_rendering(
        self,
        served: Ids,
        last_message: Message,
        new_messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> Extension:
        close, delta = self._seams.between(last_message, new_messages, tools, cut=cut)
        return self._joint.join(served, close, delta)

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

    def encode(self, text: str) -> Ids:
        """See Renderer."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """See Renderer."""
        return self.tokenizer.decode(ids)

    def compare(self, expected: Ids, actual: Ids) -> list[Mismatch]:
        """See Renderer."""
        return compare(expected.tolist(), actual.tolist(), self.comparison, self.decode)

    def mismatches(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        served: Ids,
        when: datetime | None = None,
    ) -> list[Mismatch]:
        """See Renderer."""
        return self.compare(self.render(messages, tools, add_generation_prompt=False, when=when), served)

    def _generation_header(self) -> Ids:
        """The ids that open an assistant turn both in a prompt and inside a history."""
        opened = self._prompt[len(self._told) :]
        inside = self._spoken[len(self._told) :]
        return ids_array(opened[: common_ids(opened, inside)])

    def _wrapped(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None, add_generation_prompt: bool
    ) -> list[int]:
        return self._rendered(messages, wrapped_tools(tools), add_generation_prompt)

    def _how_turns_end(self) -> Joint:
        """Stop tokens close turns; in families whose turns have no close they open the next message."""
        closed = self._closed_at() is not None
        closers = self.stop_token_ids | self._closing_ids() if closed else frozenset[int]()
        openers = frozenset[int]() if closed else self._first_marks()
        return Joint(self.tokenizer.marks, self.stop_token_ids, closers, openers)

    def _closing_ids(self) -> frozenset[int]:
        """What a turn of text is closed with inside a history: some families end their last one
        otherwise."""
        try:
            return frozenset(self._seams.between(TEXT_TURN, [_USER], None)[0][:1].tolist())
        except RendererRefused:
            return frozenset()

    def _first_marks(self) -> frozenset[int]:
        """Stop tokens that a new message begins with."""
        firsts = set()
        for role, message in _ROLES.items():
            turn = ONE_CALL if role == "tool" else TEXT_TURN
            try:
                firsts |= set(self._seams.between(turn, [message], [TOOL])[1][:1].tolist())
            except RendererRefused:
                continue
        return frozenset(firsts) & self.stop_token_ids

    def _bridges(self, calls: bool, ended: bool) -> bool:
        """Whether the bridge spells what the family renders behind a turn of this kind."""
        turn, new = (ONE_CALL, [_ROLES["tool"]]) if calls else (TEXT_TURN, [_USER])
        tools = [TOOL] if calls else None
        try:
            served = self._served_dummy(turn, new, tools, ended)
            bridged, rendered = (
                self._bridge.over(served, new, tools),
                self._by_rendering(served, turn, new, tools),
            )
        except (RendererRefused, TemplateError):
            return False
        return self._spelt(served, bridged) == self._spelt(served, rendered)

    def _served_dummy(self, turn: Message, new: list[Message], tools: list[Tool] | None, ended: bool) -> Ids:
        """A prompt and a dummy turn, up to its stop token or without it."""
        prompt = self._wrapped([_USER], tools, True)
        told = self._wrapped([_USER, turn], tools, False)
        close, delta = self._seams.between(turn, new, tools)
        shared = common_ids(prompt, told)
        spoken = told[shared : len(told) - close.size]
        thought = self.encode(closing_of(self.decode(prompt), self.decode(prompt[:shared])))
        last = told[len(told) - close.size :] or delta.tolist()
        stop = last[:1] if ended else []
        return ids_array([*prompt, *thought.tolist(), *spoken, *stop])

    def _spelt(self, served: Ids, extension: Extension) -> str:
        return self.decode(np.concatenate([served[: served.size - extension.trim], extension.ids]))

    def _appends(self, message: Message) -> bool:
        """Whether the family prints a message of this role behind a generated turn."""
        turn, tools = (ONE_CALL, [TOOL]) if message["role"] == "tool" else (TEXT_TURN, None)
        try:
            text = self.decode(self._wrapped([_USER, turn, message], tools, True))
        except TemplateError:
            return False
        return text.rfind(message["content"]) > text.rfind(SENTINEL)

    def _closed_at(self) -> int | None:
        """Position of the stop token that closes a turn of text; None in families without closes."""
        start = len(self._told) + self._header.size
        behind = range(start, len(self._spoken))
        return next((at for at in behind if self._spoken[at] in self.stop_token_ids), None)

    def _comparison(self) -> ComparisonRules:
        """Tails differ in the stop tokens that open the next message and in the text behind a stop token."""
        special, prefix = self.tokenizer.special_ids, self.decode(self._header)
        if (closed_at := self._closed_at()) is None:
            return ComparisonRules(special, self.stop_token_ids, prefix)
        trailing = frozenset(self._spoken[closed_at + 1 :])
        return ComparisonRules(special, trailing, prefix, self._closing_ids() | {self._spoken[closed_at]})


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
