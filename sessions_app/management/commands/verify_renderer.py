"""`manage.py verify_renderer`: the invariants of a renderer as a table; exit status 1 when one does not
hold."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.parser_trials import fitting_parsers
from sessions_app.rendering.parsers.registry import REASONING_PARSERS, TOOL_PARSERS
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.rendering.token_diff import on_lines
from sessions_app.rendering.verification import FAIL, NONE, OK, WARN, Check, failed, verify

_MEANINGS = {
    WARN: "served tokens stay where a fresh render would change them, or a role cannot follow a turn",
    FAIL: "sessions shatter or drift, or turns are misread",
    NONE: "the template knows no such thing",
}


class Command(BaseCommand):
    """Needs no database."""

    help = (
        "Checks that a template or family can continue served tokens and read its own turns, and shows the "
        "first tokens where it cannot. What is not given is as configured. The exit status is 1 if anything "
        "failed."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What is not given is as configured."""
        parser.add_argument("--model", help="tokenizer folder or hub name")
        parser.add_argument("--renderer", help="auto, template, template:FAMILY or renderers:FAMILY")
        parser.add_argument("--chat-template", help="file with a chat template")
        parser.add_argument("--chat-template-kwargs", help="JSON object")
        tools, reasoning = ", ".join(TOOL_PARSERS), ", ".join(REASONING_PARSERS)
        parser.add_argument("--tool-parser", help=f"how calls are read from ids: {tools}")
        parser.add_argument("--reasoning-parser", help=f"how reasoning is read from ids: {reasoning}")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Loads, checks, prints."""
        renderer = _renderer(options)
        checks = verify(renderer)
        self.stdout.write(_as_json(renderer, checks) if options["json"] else _table(renderer, checks))
        misread = failed([check for check in checks if check.area == "parse"])
        if misread and isinstance(renderer, TemplateRenderer) and not options["json"]:
            self.stdout.write(_advice(fitting_parsers(renderer)))
        if failed(checks):
            sys.exit(1)


def _renderer(options: dict[str, Any]) -> Renderer:
    configured = settings.TITO
    template = options["chat_template"]
    try:
        return load_renderer(
            options["renderer"] or configured.renderer,
            model=_given(options["model"], configured.model),
            chat_template=Path(template) if template else configured.chat_template,
            kwargs=_kwargs(options["chat_template_kwargs"], configured.chat_template_kwargs),
            tool_parser=_given(options["tool_parser"], configured.tool_parser),
            reasoning_parser=_given(options["reasoning_parser"], configured.reasoning_parser),
        )
    except ValueError as error:
        raise CommandError(str(error)) from error


def _given(option: str | None, configured: str) -> str:
    return configured if option is None else option


def _kwargs(given: str | None, configured: dict[str, Any]) -> dict[str, Any]:
    if given is None:
        return configured
    try:
        kwargs = json.loads(given)
    except ValueError as error:
        raise ValueError(f"--chat-template-kwargs is not JSON: {error}") from None
    if not isinstance(kwargs, dict):
        raise ValueError("--chat-template-kwargs must be a JSON object")
    return kwargs


def _as_json(renderer: Renderer, checks: tuple[Check, ...]) -> str:
    found = {"renderer": renderer.name, "fingerprint": renderer.fingerprint, "failed": failed(checks)}
    return json.dumps(
        {**found, "checks": [check.as_json() for check in checks]}, ensure_ascii=False, indent=1
    )


def _table(renderer: Renderer, checks: tuple[Check, ...]) -> str:
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in (OK, WARN, FAIL)}
    found = {check.verdict for check in checks}
    return "\n".join(
        [
            f"{renderer.name}  fingerprint {renderer.fingerprint[:16]}",
            "",
            *(line for check in checks for line in _rows(check)),
            "",
            "  ".join(f"{count} {verdict}" for verdict, count in counts.items()),
            *(f"{verdict}: {meaning}" for verdict, meaning in _MEANINGS.items() if verdict in found),
        ]
    )


def _advice(fitting: Sequence[tuple[str, str]]) -> str:
    if not fitting:
        return "No parser here reads its turns: use an engine that parses, or a family of renderers:."
    named = (f"--tool-parser {tools} --reasoning-parser {reasoning}" for tools, reasoning in fitting)
    return "\n".join(["Its turns are read by:", *(f"  {one}" for one in named)])


def _rows(check: Check) -> list[str]:
    """The check, and below it what was found."""
    below = on_lines(check.detail) if check.detail else []
    return [f"{check.verdict:<5} {check.area:<5} {check.name}", *(f"{'':<12}{line}" for line in below)]
