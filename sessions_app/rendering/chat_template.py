"""A chat template: Jinja the way Hugging Face runs it, messages and tools to text.

Not here: ids, families, what is appended to what. Invariant: rendering changes neither the messages nor
the tools given to it (the sandbox is immutable), and whatever a template raises is a TemplateError with
its own message.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sessions_app.errors import TemplateError

Clock = Callable[[str], str]
"""strftime_now: a format to the current time."""


class GenerationTag(Extension):
    """`{% generation %}` marks what the assistant says for training masks; here it only passes its body
    through."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements inside the tag."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise JinjaError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes HTML; Hugging Face's does not."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


class ChatTemplate:
    """A compiled template, or a set of named ones of which `tool_use` serves requests with tools."""

    def __init__(self, source: str | Mapping[str, str]) -> None:
        """Raises ValueError when a template does not compile."""
        named = {"default": source} if isinstance(source, str) else dict(source)
        try:
            self._templates = {name: _environment().from_string(text) for name, text in named.items()}
        except JinjaError as error:
            raise ValueError(f"chat template does not compile: {error}") from error
        self._default = "default" if "default" in named else next(iter(named))
        self.fingerprint = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any],
        *,
        add_generation_prompt: bool,
        clock: Clock | None = None,
    ) -> str:
        """Text of a conversation. Raises TemplateError."""
        name = "tool_use" if tools is not None and "tool_use" in self._templates else self._default
        if clock is not None:
            variables = {**variables, "strftime_now": clock}
        try:
            return self._templates[name].render(
                {"documents": None, **variables, "messages": messages, "tools": tools},
                add_generation_prompt=add_generation_prompt,
            )
        except Exception as error:
            raise TemplateError(str(error) or type(error).__name__) from error
