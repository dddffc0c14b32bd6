"""`manage.py demo`: an agent of the `openai` SDK works on a running server, and a table says what came of it.

Talks to the server over HTTP only, so it can be pointed at any TITO.
"""

import asyncio
import sys
import time
from argparse import ArgumentParser
from importlib.util import find_spec

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tito_project.embedded.listening import base_url

_PLAIN_WIDTH = 100
ADMIN_PATH = "/admin/sessions_app/session/"


class Command(BaseCommand):
    """Exits non-zero if any turn failed."""

    help = "Run some dozens of agent sessions against a running server and print what became of their tokens"
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many, and where."""
        parser.add_argument("--sessions", type=int, default=36, help="agent runs (default 36)")
        parser.add_argument("--concurrency", type=int, default=12, help="runs at a time (default 12)")
        parser.add_argument("--base-url", help="the server (default: TITO_BIND and TITO_PORT)")

    def handle(self, *, sessions: int, concurrency: int, base_url: str | None, **options: object) -> None:
        """Raises CommandError with one clear line if something is missing."""
        if sessions < 1 or concurrency < 1:
            raise CommandError("--sessions and --concurrency must be at least 1")
        if find_spec("openai") is None:
            raise CommandError("the demo is written with the openai package: pip install openai")
        base = base_url or _own_address()
        try:
            failed = asyncio.run(_run(base, sessions, concurrency))
        except KeyboardInterrupt:
            raise CommandError("interrupted") from None
        if failed:
            raise CommandError(f"{failed} of {sessions} sessions failed")


def _own_address() -> str:
    return base_url(settings.TITO.bind, settings.TITO.port)


async def _run(base: str, sessions: int, concurrency: int) -> int:
    """The number of failed sessions."""
    from sessions_app.demo_agent.fleet import Plan, run_all
    from sessions_app.demo_agent.report import table
    from sessions_app.demo_agent.server import NoServer, Server

    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    plan = Plan(sessions, concurrency, group=f"demo-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        async with Server(base, settings.TITO.admin_token) as server:
            await server.require_ready()
            with _progress(console) as progress:
                bar = progress.add_task("agents at work", total=sessions, turns=0)
                totals = await run_all(
                    server, plan, lambda so_far: progress.update(bar, advance=1, turns=len(so_far.turns))
                )
    except NoServer as error:
        raise CommandError(str(error)) from None
    console.print(table(totals))
    found = f"{server.base}{ADMIN_PATH}?q={plan.group}"
    console.print(f"\nLook at them: {found}", soft_wrap=True, highlight=False)
    return totals.errors.total()


def _progress(console: Console) -> Progress:
    """Nothing at all where no terminal is watching."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sessions, {task.fields[turns]} turns"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
