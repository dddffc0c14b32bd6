"""`template`: any Hugging Face chat template, nothing known about it beforehand.

How a turn closes and what new messages look like is learned from dummy conversations. Invariants: the real
history is never rendered to continue it; what the served ids already hold of the close, or of the next
opener, is neither doubled nor lost; what cannot be told apart is refused with a cause.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sessions_app.rendering.base import TemplateRendererBase
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.closing import Close, Closing, common_length, overlap
from sessions_app.rendering.comparator import ComparisonRules
from sessions_app.rendering.dummy import ONE_CALL, SENTINEL, TEXT_TURN, TOOL
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.prompt_text import PromptText, plain_text
from sessions_app.rendering.protocol import Extension, Ids, Message, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer, ids_array

_ROLES = ("assistant", "system", "tool", "user")
_NEW_SENTINEL = "Xq7tito4Znew9Kend"
_MOST_OPENER_IDS = 4
"""Leading special ids of a delta that may have been served already."""
_NOTHING = ids_array([])


class TemplateRenderer(TemplateRendererBase):
    """See module."""

    name = "template"
    launch_kwargs_name = "TemplateRenderer"

    def __init__(
        self, tokenizer: ChatTokenizer, template: ChatTemplate, parser: ReplyParser, kwargs: Mapping[str, Any]
    ) -> None:
        self.constants = {}
        super().__init__(tokenizer, template, parser, kwargs)
        self._closing = Closing(tokenizer, self._text)
        deltas = {role: self._probed_delta(role) for role in _ROLES}
        self.append_roles = frozenset(role for role, delta in deltas.items() if delta is not None)
        self._closers = self._learned_closers()
        self._openers = frozenset() if self._closers else self._learned_openers(deltas)
        self.max_trim_tokens = 1 if self._openers else 0
        self.stop_token_ids = tokenizer.end_ids | self._closers | self._openers
        self.comparison = self._comparison()

    def _prompt_text(self, variables: Mapping[str, Any]) -> PromptText:
        return plain_text(self.template, variables)

    def extend(
        self,
        served: Ids,
        last_message: Message,
        new_messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> Extension:
        """See Renderer. A cut turn needs no rule of its own: what is missing of the close is added either
        way."""
        close = self._closing.of(last_message, tools)
        glue_text, delta_text = self._closing.before(close, last_message, tools, new_messages)
        glue = close.ids if glue_text == close.text else self.tokenizer.encode_after("", glue_text)
        return self._joined(served, glue, self.tokenizer.encode_after(glue_text, delta_text))

    def _joined(self, served: Ids, glue: Ids, delta: Ids) -> Extension:
        """The served end against the close and what follows it."""
        shared = overlap(served, np.concatenate([glue, delta]), glue.size + self._leading_marks(delta))
        if shared:
            return Extension(0, glue[shared:], delta[max(0, shared - glue.size) :])
        last = int(served[-1]) if served.size else -1
        if last in self._openers:
            return self._after_opener(last, glue, delta)
        return Extension(0, glue[self._standing_in(last, glue) :], delta)

    def _leading_marks(self, delta: Ids) -> int:
        marks = 0
        for number in delta[:_MOST_OPENER_IDS].tolist():
            if number not in self.tokenizer.marks:
                break
            marks += 1
        return marks

    @staticmethod
    def _after_opener(last: int, glue: Ids, delta: Ids) -> Extension:
        """The turn ended with an opener: the right one is kept as sampled, a wrong one gives way."""
        if delta.size and int(delta[0]) == last:
            return Extension(0, _NOTHING, delta[1:])
        return Extension(1, glue, delta)

    def _standing_in(self, last: int, glue: Ids) -> int:
        """How many ids of the close a served stop token stands for: those up to itself, or, where the
        template closes other kinds of turns with it, those up to the close token of this kind."""
        numbers = glue.tolist()
        if last in self.stop_token_ids and last in numbers:
            return numbers.index(last) + 1
        if last in self._closers:
            return next((index + 1 for index, number in enumerate(numbers) if number in self._closers), 0)
        return 0

    def _probed_delta(self, role: str) -> Ids | None:
        """Ids that a message of this role adds; None when the template cannot append it."""
        turn, tools = (ONE_CALL, [TOOL]) if role == "tool" else (TEXT_TURN, None)
        message: dict[str, Any] = {"role": role, "content": _NEW_SENTINEL}
        if role == "tool":
            message |= {"tool_call_id": "call00001", "name": "probe"}
        try:
            close = self._closing.of(turn, tools)
            delta = self._closing.before(close, turn, tools, [message])[1]
        except RendererRefused:
            return None
        return self.tokenizer.encode(delta) if _NEW_SENTINEL in delta else None

    def _closes(self) -> list[tuple[Message, list[Tool] | None, Close]]:
        """The closes of a turn of text and of one with a call."""
        closes = []
        for turn, tools in ((TEXT_TURN, None), (ONE_CALL, [TOOL])):
            try:
                closes.append((turn, tools, self._closing.of(turn, tools)))
            except RendererRefused:
                continue
        return closes

    def _learned_closers(self) -> frozenset[int]:
        """The first mark of every close: what ends a turn in this template, at its end or inside a
        history."""
        spelled = []
        for turn, tools, close in self._closes():
            spelled.append(close.ids)
            try:
                spelled.append(self.tokenizer.encode(self._closing.before(close, turn, tools, [])[0]))
            except RendererRefused:
                continue
        firsts = (next((i for i in ids.tolist() if i in self.tokenizer.marks), None) for ids in spelled)
        return frozenset(first for first in firsts if first is not None)

    def _learned_openers(self, deltas: Mapping[str, Ids | None]) -> frozenset[int]:
        """Without a close the model stops at the opener of the next message."""
        others = [delta for role, delta in deltas.items() if role != "assistant" and delta is not None]
        return frozenset(int(delta[0]) for delta in others if delta.size) & self.tokenizer.marks

    def _comparison(self) -> ComparisonRules:
        """Tails differ in what engines leave out: the close behind its first mark, or the next opener."""
        trailing = set(self._openers)
        for _, _, close in self._closes():
            trailing |= set(close.ids.tolist()) - self.tokenizer.separators - self._closers
        return ComparisonRules(self.tokenizer.special_ids, frozenset(trailing), self._assistant_prefix())

    def _assistant_prefix(self) -> str:
        """How an assistant turn starts both in the generation prompt and inside a history."""
        try:
            close = self._closing.of(TEXT_TURN, None)
            prompt = self._closing.before(close, TEXT_TURN, None, [])[1]
            told = self._text([*close.opening, TEXT_TURN], None, add_generation_prompt=False)
        except RendererRefused:
            return ""
        start = told.partition(SENTINEL)[0].rfind(prompt[:1]) if prompt else -1
        best = ""
        while start >= len(close.opening_text):
            best = max(best, prompt[: common_length(told[start:], prompt)], key=len)
            start = told.rfind(prompt[:1], 0, start)
        marks = [at for token in self.tokenizer.separator_texts if (at := best.find(token)) >= 0]
        return best[min(marks, default=0) :]
