"""The drift audit: the leaves of stored sessions against fresh renders of their stored messages.

A session is due while its newest node has no finding under the present renderer. Its leaves are audited in
commit order, the newest (which is always a leaf) last, so an audit that was interrupted goes on where it
stopped. Invariants: auditing again changes nothing; no node is rendered twice under one renderer.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from sessions_app.auditing.paths import finding_of
from sessions_app.models import DriftFinding, ModelProfile, Node, Session
from sessions_app.rendering.protocol import Renderer

RendererOf = Callable[[ModelProfile], Renderer]
"""A profile's renderer. Raises ValueError with what is missing."""

_SESSIONS_AT_A_TIME = 100
_REPLACED = [
    name.attname
    for name in DriftFinding._meta.concrete_fields
    if name.attname not in ("id", "session_id", "node_seq")
]


@dataclass(frozen=True, slots=True)
class Scope:
    """What to audit."""

    session: UUID | None = None
    """None = every session."""
    limit: int | None = None
    """Most nodes."""
    seconds: float | None = None
    """No node is begun after so long."""
    quiet_s: float = 0.0
    """Sessions that were active so recently are left for later: their leaves still grow."""
    again: bool = False
    """Also what was audited before."""


@dataclass(slots=True)
class Audit:
    """What an audit did."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Nodes by outcome."""
    unavailable: dict[str, str] = field(default_factory=dict)
    """Profiles without a renderer here, and why."""
    complete: bool = True
    """False: the limit or the time was reached."""

    @property
    def audited(self) -> int:
        """Nodes audited."""
        return self.outcomes.total()


def audit(renderer_of: RendererOf, scope: Scope) -> Audit:
    """Audit what is due, newest sessions first, and store the findings."""
    started, ends_at = timezone.now(), _deadline(scope.seconds)
    done = Audit()
    for profile in _profiles(scope):
        try:
            renderer = renderer_of(profile)
        except ValueError as error:
            done.unavailable[profile.name] = str(error)
            continue
        known = _known(renderer, started if scope.again else None)
        for session_id, seq in _due(profile, scope, known):
            if time.monotonic() > ends_at or done.audited == scope.limit:
                done.complete = False
                return done
            finding = finding_of(session_id, seq, renderer)
            if finding is not None and _stored(finding):
                done.outcomes[finding.outcome] += 1
    return done


def _deadline(seconds: float | None) -> float:
    return time.monotonic() + (float("inf") if seconds is None else seconds)


def _profiles(scope: Scope) -> QuerySet[ModelProfile]:
    profiles = ModelProfile.objects.filter(Exists(Session.objects.filter(profile=OuterRef("pk"))))
    return profiles.filter(sessions=scope.session) if scope.session else profiles


def _known(renderer: Renderer, since: datetime | None) -> QuerySet[DriftFinding]:
    """Findings that need not be made again."""
    known = DriftFinding.objects.filter(renderer_fingerprint=renderer.fingerprint)
    return known.filter(audited_at__gte=since) if since else known


def _due(profile: ModelProfile, scope: Scope, known: QuerySet[DriftFinding]) -> Iterator[tuple[UUID, int]]:
    """Nodes without a known finding; the caller stores one for each before it asks for the next."""
    newest = known.filter(session=OuterRef("pk"), node_seq=OuterRef("next_seq") - 1)
    sessions = Session.objects.filter(
        ~Exists(newest),
        profile=profile,
        next_seq__gt=0,
        last_activity_at__lte=timezone.now() - timedelta(seconds=scope.quiet_s),
    )
    if scope.session:
        sessions = sessions.filter(pk=scope.session)
    for session_id in _in_pages(sessions):
        yield from ((session_id, seq) for seq in _leaves(session_id, known))


def _in_pages(sessions: QuerySet[Session]) -> Iterator[UUID]:
    """Newest first, each once; what was audited meanwhile is not asked for again."""
    page = list(_newest_first(sessions))
    while page:
        yield from (session_id for session_id, _ in page)
        session_id, created_at = page[-1]
        older = Q(created_at__lt=created_at) | Q(created_at=created_at, pk__lt=session_id)
        page = list(_newest_first(sessions.filter(older)))


def _newest_first(sessions: QuerySet[Session]) -> QuerySet[Session, tuple[UUID, datetime]]:
    rows = sessions.order_by("-created_at", "-pk").values_list("pk", "created_at")
    return rows[:_SESSIONS_AT_A_TIME]


def _leaves(session_id: UUID, known: QuerySet[DriftFinding]) -> list[int]:
    children = Node.objects.filter(session=OuterRef("session"), parent_seq=OuterRef("seq"))
    found = known.filter(session=OuterRef("session"), node_seq=OuterRef("seq"))
    due = Node.objects.filter(~Exists(children), ~Exists(found), session=session_id)
    return list(due.order_by("seq").values_list("seq", flat=True))


def _stored(finding: DriftFinding) -> bool:
    """Stores it in place of an earlier one; False where its session has gone meanwhile."""
    try:
        DriftFinding.objects.bulk_create(
            [finding],
            update_conflicts=True,
            unique_fields=["session", "node_seq"],
            update_fields=_REPLACED,
        )
    except IntegrityError:
        return False
    return True
