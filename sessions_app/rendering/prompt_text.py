"""From messages to prompt text, for one template under one set of kwargs.

Not here: ids and what was served. Invariant: a render depends only on its arguments, the template and the
kwargs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessions_app.errors import TemplateError
from sessions_app.rendering.chat_template import ChatTemplate, Clock
from sessions_app.rendering.preparation import (
    ArgumentsForm,
    ContentForm,
    canonical,
    prepare_messages,
    served_tools,
    wrapped_tools,
)
from sessions_app.rendering.protocol import Message, Tool

_USER: Message = {"role": "user", "content": "dummy user"}
_SYSTEM: Message = {"role": "system", "content": "dummy system"}
_TOOL: Tool = {
    "type": "function",
    "function": {"name": "probe", "description": "", "parameters": {"type": "object"}},
}
_KEY, _VALUE = "probe_key", "probe_value"


def _frozen_clock(pattern: str) -> str:
    return pattern


@dataclass(frozen=True, slots=True)
class PromptText:
    """Renders conversations to text. Immutable; shared between threads."""

    template: ChatTemplate
    variables: Mapping[str, Any]
    """What the template may name: special tokens and template kwargs."""
    dump_tools: Callable[[Sequence[Tool] | None], list[dict[str, Any]] | None]
    arguments: ArgumentsForm
    content: ContentForm

    def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        add_generation_prompt: bool,
        clock: Clock | None = None,
    ) -> str:
        """The prompt's text. Raises TemplateError, InvalidTools, InvalidMessages, UnsupportedContent.

        Arguments that are no JSON reach the template as text; one that cannot take text gets them wrapped.
        """
        dumped = self.dump_tools(tools)
        prepared = prepare_messages(messages, self.arguments, self.content)
        try:
            return self._rendered(prepared, dumped, add_generation_prompt, clock)
        except TemplateError:
            wrapped = prepare_messages(messages, ArgumentsForm.OBJECT, self.content)
            if self.arguments is not ArgumentsForm.VALUE or wrapped == prepared:
                raise
            return self._rendered(wrapped, dumped, add_generation_prompt, clock)

    def _rendered(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: list[dict[str, Any]] | None,
        add_generation_prompt: bool,
        clock: Clock | None,
    ) -> str:
        """One render; a template that raises with wrapped tools gets one more try with the bare functions."""
        try:
            return self.template.render(
                messages, tools, self.variables, add_generation_prompt=add_generation_prompt, clock=clock
            )
        except TemplateError as error:
            if tools is None:
                raise
            bare = [tool["function"] for tool in tools]
            try:
                return self.template.render(
                    messages, bare, self.variables, add_generation_prompt=add_generation_prompt, clock=clock
                )
            except TemplateError:
                raise error from None

    def head(self, tools: Sequence[Tool] | None) -> str:
        """What the engine sees up to and including a first user turn, without and with a system message
        before it; key order of the schemas and the time of day play no part. A template that refuses both
        gives its reasons."""
        ordered = canonical(self.dump_tools(tools))
        fixed = replace(self, dump_tools=lambda _: ordered)
        return "\0".join(fixed._head_of(messages) for messages in ([_USER], [_SYSTEM, _USER]))

    def generation_prompt(self) -> str | None:
        """What the template prints to make the assistant speak; None where it cannot be told apart."""
        try:
            told = self([_USER], None, add_generation_prompt=False)
            asked = self([_USER], None, add_generation_prompt=True)
        except TemplateError:
            return None
        return asked[len(told) :] if asked.startswith(told) else None

    def _head_of(self, messages: list[Message]) -> str:
        try:
            return self(messages, None, add_generation_prompt=False, clock=_frozen_clock)
        except TemplateError as error:
            return f"template error: {error}"


def served_text(template: ChatTemplate, variables: Mapping[str, Any]) -> PromptText:
    """Renders as inference engines do: arguments as values, tools with defaults, content as sent."""
    return PromptText(template, variables, served_tools, ArgumentsForm.VALUE, ContentForm.AS_SENT)


def plain_text(template: ChatTemplate, variables: Mapping[str, Any]) -> PromptText:
    """Renders for any template: tools as sent, arguments and parts in the form that the template can take."""
    base = PromptText(template, variables, wrapped_tools, ArgumentsForm.VALUE, ContentForm.TEXT_PARTS)
    shaped = replace(base, content=_content_form(base))
    return replace(shaped, arguments=_arguments_form(shaped))


def _content_form(text: PromptText) -> ContentForm:
    """Parts where a list of one text prints like the text itself, always parts where only the list is
    printed."""
    parts: Message = {"role": "user", "content": [{"type": "text", "text": _USER["content"]}]}
    as_parts, as_text = _printed(text, [parts], None), _printed(text, [_USER], None)
    if _USER["content"] in as_parts and _USER["content"] not in as_text:
        return ContentForm.ALWAYS_PARTS
    return ContentForm.TEXT_PARTS if as_parts and as_parts == as_text else ContentForm.JOINED


def _arguments_form(text: PromptText) -> ArgumentsForm:
    """Objects, unless the template prints them as Python does or cannot take them while it can take text."""
    as_object = _with_call(text)
    if _KEY in as_object and f"{{'{_KEY}'" not in as_object:
        return ArgumentsForm.VALUE
    as_text = _with_call(replace(text, arguments=ArgumentsForm.TEXT))
    return ArgumentsForm.TEXT if _KEY in as_text else ArgumentsForm.VALUE


def _with_call(text: PromptText) -> str:
    """A tool-calling turn's render; "" when the template refuses it."""
    call = {"id": "call00001", "type": "function", "function": {"name": "probe", "arguments": {_KEY: _VALUE}}}
    turn: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return _printed(text, [_USER, turn], [_TOOL]) or _printed(text, [_USER, turn], None)


def _printed(text: PromptText, messages: list[Message], tools: list[Tool] | None) -> str:
    """A render; "" when the template refuses it."""
    try:
        return text(messages, tools, add_generation_prompt=True)
    except TemplateError:
        return ""
