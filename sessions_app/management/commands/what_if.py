"""manage.py what_if: stored requests under another policy, matcher or profile, without an engine."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions_app.admin.readers import counting_renderer, world
from sessions_app.admin.twin import plain
from sessions_app.insight.what_if.report import Report, SessionResult, Tally
from sessions_app.insight.what_if.running import run
from sessions_app.insight.what_if.wanted import DEFAULT_LIMIT, chosen, wanted_of

_SHOWN = 10


class Command(BaseCommand):
    """Reads only: nothing changes in the original."""

    help = "Replay stored requests under other settings: forks and ids saved, newly accepted pairs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument(
            "--session", action="append", default=[], help="only this session; may be repeated"
        )
        parser.add_argument("--since", help="sessions created then or later (ISO 8601)")
        parser.add_argument("--until", help="sessions created before (ISO 8601)")
        parser.add_argument("--of-harness", help="sessions of this harness")
        parser.add_argument("--limit", type=int, default=DEFAULT_LIMIT, help="the newest so many")
        parser.add_argument("--policy", help="rollback, tree or linear")
        parser.add_argument(
            "--matcher", help="strict, loose_tool_call, role_content_only, exact, or a dotted path"
        )
        parser.add_argument("--on-nonlinear", help="reset, error or passthrough")
        parser.add_argument("--max-rollback", type=int, help="generations that one request may discard")
        parser.add_argument("--harness", help="a harness profile; none switches it off")
        parser.add_argument("--profile", help="count ids as this model profile renders them")
        parser.add_argument(
            "--renders", action="store_true", help="count ids by rendering, and re-rendered rows"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Replays and prints."""
        try:
            wanted = wanted_of({**options, "sessions": options["session"]})
            report = run(chosen(wanted), wanted.changes, world(), counting_renderer(wanted), _quiet)
        except ValueError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(plain(report)))
            return
        self.stdout.write("\n".join(_lines(report)))


def _quiet(_done: int, _total: int) -> None:
    """A command needs no progress."""


def _lines(report: Report) -> list[str]:
    changed = ", ".join(f"{name} = {value}" for name, value in report.changed.items()) or "nothing"
    lines = [
        f"changed: {changed}",
        f"sessions: {report.sessions}",
        "",
        *_table(report.before, report.after),
        "",
    ]
    lines += [
        f"forks saved: {report.forks_saved}",
        f"ids not tokenised again: {report.tokens_saved}",
        f"turns that attach otherwise: {report.changed_turns}",
        f"refused requests that would be served: {report.served} of {report.before.refused}",
        f"newly accepted pairs: {report.accepted_pairs}",
    ]
    if report.rerendered_rows is not None:
        lines.append(f"training rows: {report.rerendered_rows} re-rendered, {report.after.leaves} healed")
    lines += [f"{number} sessions without renders: {reason}" for reason, number in report.unavailable.items()]
    for result in report.results[:_SHOWN]:
        lines += ["", *_session_lines(result)]
    return lines


def _table(before: Tally, after: Tally) -> list[str]:
    names = list(Tally.__dataclass_fields__)
    width = max(map(len, names))
    head = f"{'':{width}}  {'as served':>12}  {'replayed':>12}"
    rows = [f"{name:{width}}  {getattr(before, name):>12}  {getattr(after, name):>12}" for name in names]
    return [head, *rows]


def _session_lines(result: SessionResult) -> list[str]:
    lines = [f"session {result.session_id}: {result.change_count} turns attach otherwise"]
    for change in result.changes[:_SHOWN]:
        was = f"{change.before_kind} of {change.before_parent} ({change.before_cause})"
        would = f"{change.after_kind} of {change.after_parent} ({change.after_cause})"
        lines.append(f"  node {change.seq}: {was} -> {would}")
    for one in result.served[:_SHOWN]:
        would = f"{one.kind} of {one.parent} ({one.cause})"
        lines.append(f"  record {one.record}: refused ({one.code}) -> {would}")
    for pair in result.pairs[:_SHOWN]:
        where = f"record {pair.record}" if pair.seq is None else f"node {pair.seq}"
        lines.append(f"  message {pair.index} of {where} now matches; {pair.field or 'message'} differs:")
        lines += [f"    stored   {pair.stored}", f"    replayed {pair.replayed}"]
    return lines
