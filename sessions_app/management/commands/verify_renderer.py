"""`manage.py verify_renderer`: the invariants of a renderer as a table; exit status 1 when one does not
hold."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.verification import Check, failed, verify


class Command(BaseCommand):
    """Needs no database."""

    help = "Checks that a template or family can continue served tokens, and shows where it cannot."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What is not given is as configured."""
        parser.add_argument("--model", help="tokenizer folder or hub name")
        parser.add_argument("--renderer", help="auto, template, template:FAMILY or renderers:FAMILY")
        parser.add_argument("--chat-template", help="file with a chat template")
        parser.add_argument("--chat-template-kwargs", help="JSON object")
        parser.add_argument("--tool-parser", help="how calls are read from ids")
        parser.add_argument("--reasoning-parser", help="how reasoning is read from ids")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Loads, checks, prints."""
        renderer = _renderer(options)
        checks = verify(renderer)
        self.stdout.write(_as_json(renderer, checks) if options["json"] else _table(renderer, checks))
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
    width = max(len(check.name) for check in checks)
    lines = [f"{renderer.name}  fingerprint {renderer.fingerprint[:16]}", ""]
    for check in checks:
        lines.append(f"{check.verdict:<5} {check.area:<5} {check.name:<{width}}  {check.detail}".rstrip())
    counts = {
        verdict: sum(check.verdict == verdict for check in checks) for verdict in ("ok", "warn", "fail")
    }
    return "\n".join([*lines, "", "  ".join(f"{count} {verdict}" for verdict, count in counts.items())])
