"""manage.py drift_audit: stored sessions against fresh renders, now."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions_app.api.wiring import configured, renderer_of
from sessions_app.auditing.drift import Audit, Scope, audit
from sessions_app.insight.drift_findings import DriftCounts, DriftGroup, load_counts, load_groups
from sessions_app.models import Session


class Command(BaseCommand):
    """Only what was not audited under the present renderer, unless told otherwise."""

    help = "Compare the served ids of stored sessions with fresh renders of their messages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--session", help="only this session (32 hex digits)")
        parser.add_argument("--limit", type=int, help="most leaves to audit")
        parser.add_argument("--again", action="store_true", help="also what was audited before")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Audits, stores, and prints what all findings add up to."""
        session = _session(options["session"])
        scope = Scope(session=session, limit=options["limit"], again=options["again"])
        done = audit(lambda profile: renderer_of(configured(settings.TITO, profile)), scope)
        groups = [] if session else load_groups()
        counts = load_counts(session)
        self.stdout.write((_as_json if options["json"] else _table)(done, counts, groups))


def _session(text: str | None) -> UUID | None:
    if text is None:
        return None
    try:
        session = UUID(hex=text)
    except ValueError:
        raise CommandError(f"--session {text!r} is no session id") from None
    if not Session.objects.filter(pk=session).exists():
        raise CommandError(f"session not found: {session.hex}")
    return session


Groups = list[tuple[DriftGroup, DriftCounts]]


def _table(done: Audit, counts: DriftCounts, groups: Groups) -> str:
    lines = [f"audited now: {_words(done.outcomes)}" + ("" if done.complete else " (the limit was reached)")]
    lines += [f"profile {name!r} was left out: {why}" for name, why in done.unavailable.items()]
    lines += ["", "all findings", *_lines(counts)]
    for group, of_group in groups:
        lines += ["", _title(group), *_lines(of_group)]
    return "\n".join(lines)


def _title(group: DriftGroup) -> str:
    named = f"profile {group.profile}, harness {group.harness or 'none'}, model {group.model or 'none'}"
    return f"{named}, template {group.template[:12]}, {group.renderer}"


def _lines(counts: DriftCounts) -> list[str]:
    return [
        f"  {'outcome':<11} {_words(counts.outcomes)}",
        f"  {'differences':<11} {_words(counts.types)}",
        f"  {'breaks':<11} {_words(counts.breaks)}",
    ]


def _words(numbers: Any) -> str:
    return ", ".join(f"{count} {name}" for name, count in numbers.items() if count) or "none"


def _as_json(done: Audit, counts: DriftCounts, groups: Groups) -> str:
    told = {
        "audited": dict(done.outcomes),
        "unavailable": done.unavailable,
        "complete": done.complete,
        "all": _plain(counts),
        "groups": [{**_named(group), **_plain(of_group)} for group, of_group in groups],
    }
    return json.dumps(told, ensure_ascii=False, indent=1)


def _named(group: DriftGroup) -> dict[str, Any]:
    return {name: getattr(group, name) for name in DriftGroup.__slots__}


def _plain(counts: DriftCounts) -> dict[str, Any]:
    return {name: dict(getattr(counts, name)) for name in DriftCounts.__slots__}
