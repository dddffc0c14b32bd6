"""`template:FAMILY`: a chat template with the fixed facts of a known family.

What is appended is the difference of two renders behind a fixed dummy history; the family's boundary rule
joins it to the served ids. Invariant: the real history is never rendered here, so a turn costs what its
new messages cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from sessions_app.errors import NotAppendOnly
from sessions_app.rendering.base import TemplateRendererBase
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.closing import Closing
from sessions_app.rendering.comparator import ComparisonRules
from sessions_app.rendering.families.facts import Boundary, FamilyFacts
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.prompt_text import PromptText, served_text
from sessions_app.rendering.protocol import Extension, Ids, Message, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer, ids_array
from sessions_app.rendering.turn_marks import learn

_DUMMY_SYSTEM: Message = {"role": "system", "content": "dummy system"}
_NOTHING = ids_array([])


class FamilyRenderer(TemplateRendererBase):
    """See module."""

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        template: ChatTemplate,
        parser: ReplyParser,
        kwargs: Mapping[str, Any],
        facts: FamilyFacts,
    ) -> None:
        self._facts = facts
        self.name = f"template:{facts.name}"
        self.launch_kwargs_name = facts.class_name
        self.constants = facts.constants
        self.max_trim_tokens = facts.max_trim_tokens
        self.append_roles = facts.append_roles
        super().__init__(tokenizer, template, parser, kwargs)
        self._boundary_ids = frozenset(_one_token(tokenizer, facts, text) for text in facts.boundary_tokens)
        self._newline = ids_array([_one_token(tokenizer, facts, "\n")]) if _needs_newline(facts) else _NOTHING
        self.comparison = _comparison(tokenizer, facts)
        self._closing = Closing(tokenizer, self._text)
        stops = self._boundary_ids or learn(self._closing, tokenizer).closers
        self.stop_token_ids = tokenizer.end_ids | stops

    def _prompt_text(self, variables: Mapping[str, Any]) -> PromptText:
        return served_text(self.template, variables)

    def _with(self, kwargs: Mapping[str, Any]) -> Self:
        return type(self)(self.tokenizer, self.template, self.parser, kwargs, self._facts)

    def extend(
        self,
        served: Ids,
        last_message: Message,
        new_messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> Extension:
        """See Renderer. A cut turn is closed the template's own way, an ended one by the family's rule."""
        delta = self.tokenizer.encode(self._appended_text(last_message, new_messages, tools))
        if cut:
            glue = self._closing.missing(served, last_message, tools)
            return Extension(0, glue, delta)
        return self._joined(served, delta)

    def _appended_text(
        self, last_message: Message, new_messages: Sequence[Message], tools: Sequence[Tool] | None
    ) -> str:
        dummy = [_DUMMY_SYSTEM, _dummy_turn(last_message)]
        before = self._text(dummy, tools, add_generation_prompt=False)
        after = self._text([*dummy, *new_messages], tools, add_generation_prompt=True)
        if not after.startswith(before):
            roles = [message.get("role") for message in new_messages] or ["generation_prompt"]
            raise NotAppendOnly(f"rendered suffix diff failed for {roles}")
        return after[len(before) :]

    def _joined(self, served: Ids, delta: Ids) -> Extension:
        """The boundary rule: glue, and how much of the served end gives way."""
        at_boundary = bool(served.size) and int(served[-1]) in self._boundary_ids
        if not at_boundary or self._facts.boundary is Boundary.CONCATENATE:
            return Extension(0, _NOTHING, delta)
        if self._facts.boundary is Boundary.NEWLINE_AFTER:
            return Extension(0, self._newline, delta)
        if delta.size and delta[0] == served[-1]:
            return Extension(0, _NOTHING, delta[1:])
        return Extension(1, _NOTHING, delta)


def _dummy_turn(last_message: Message) -> Message:
    calls = last_message.get("tool_calls") or []
    return {"role": "assistant", "content": "", "reasoning_content": " ", "tool_calls": calls}


def _needs_newline(facts: FamilyFacts) -> bool:
    return facts.boundary is Boundary.NEWLINE_AFTER


def _one_token(tokenizer: ChatTokenizer, facts: FamilyFacts, text: str) -> int:
    number = tokenizer.token_id(text)
    if number is None:
        raise ValueError(
            f"renderer template:{facts.name} needs {text!r} as one token; {tokenizer.model!r} has none"
        )
    return number


def _comparison(tokenizer: ChatTokenizer, facts: FamilyFacts) -> ComparisonRules:
    inside = {tokenizer.token_id(text) for text in facts.unsegmented}
    trailing = {number for text in facts.trailing if (number := tokenizer.token_id(text)) is not None}
    return ComparisonRules(tokenizer.special_ids - inside, frozenset(trailing), facts.assistant_prefix)
