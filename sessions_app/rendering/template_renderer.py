"""`template`: any Hugging Face chat template, nothing known about it beforehand.

How a turn closes and what new messages look like is learned from dummy conversations. Invariants: the real
history is never rendered to continue it; what the served ids already hold of the close, or of the next
opener, is neither doubled nor lost; what cannot be told apart is refused with a cause.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_app.rendering.base import TemplateRendererBase
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.closing import Closing, common_length
from sessions_app.rendering.comparator import ComparisonRules
from sessions_app.rendering.dummy import SENTINEL
from sessions_app.rendering.joining import Joint
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.prompt_text import PromptText, plain_text
from sessions_app.rendering.protocol import Extension, Ids, Message, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer
from sessions_app.rendering.turn_marks import learn


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
        self._marks = learn(self._closing, tokenizer)
        self.append_roles = self._marks.append_roles
        self.max_trim_tokens = 1 if self._marks.openers else 0
        self.stop_token_ids = tokenizer.end_ids | self._marks.closers | self._marks.openers
        self._joint = Joint(tokenizer.marks, self.stop_token_ids, self._marks.closers, self._marks.openers)
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
        close, delta = self._closing.before(last_message, tools, new_messages)
        return self._joint.join(served, close.ids, self.tokenizer.encode_after(close.text, delta))

    def _comparison(self) -> ComparisonRules:
        """Tails differ in what engines leave out: the close behind its first mark, or the next opener."""
        trailing = set(self._marks.openers)
        for close in self._marks.closes:
            trailing |= set(close.ids.tolist()) - self.tokenizer.separators - self._marks.closers
        return ComparisonRules(self.tokenizer.special_ids, frozenset(trailing), self._assistant_prefix())

    def _assistant_prefix(self) -> str:
        """How an assistant turn starts both in the generation prompt and inside a history, from its first
        mark on."""
        text_close = next(iter(self._marks.closes), None)
        prompt = self._text.generation_prompt()
        if text_close is None or not prompt:
            return ""
        told = text_close.base.partition(SENTINEL)[0]
        start, best = told.rfind(prompt[:1]), ""
        while start >= len(text_close.opening_text):
            best = max(best, prompt[: common_length(told[start:], prompt)], key=len)
            start = told.rfind(prompt[:1], 0, start)
        marks = [at for token in self.tokenizer.separator_texts if (at := best.find(token)) >= 0]
        return best[min(marks, default=0) :]
