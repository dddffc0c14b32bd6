"""The page of a session: facts, lineage, turns, records, events, rewards."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from sessions_app.admin.pages.picture import COLLAPSE_ABOVE, Picture, draw
from sessions_app.admin.pages.serving import number, page, read_session, shown
from sessions_app.admin.pages.tables import (
    EventLine,
    RecordLine,
    RewardLine,
    event_lines,
    record_lines,
    reward_lines,
)
from sessions_app.admin.pages.training import training_of
from sessions_app.admin.roles import may_operate, may_purge
from sessions_app.history.matchers.linear_form import uses_linear_form
from sessions_app.insight.forest import ForestFacts, NodeLine, load_facts, load_leaf_tokens, load_lines
from sessions_app.models import Session
from sessions_app.presentation.addresses import list_url, session_url

MOST_DRAWN = 2000
"""Nodes of one picture; of larger forests the newest."""
TURNS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Identity:
    """What a session was created with, and its life."""

    id: str
    status: str
    deleted: bool
    profile: str
    renderer: str
    backend: str
    history_policy: str
    on_nonlinear: str
    on_truncated: str
    retry_policy: str
    matcher: str
    healing: bool
    passthrough: bool
    harness: str | None
    rollout: str | None
    attempt: str | None
    group: str | None
    group_size: int | None
    labels: str
    """JSON text."""
    sampling: str
    """JSON text."""
    finish_status: str | None
    finish_metadata: str | None
    created_at: datetime
    last_activity_at: datetime
    finished_at: datetime | None
    active: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters that commits keep: the four of the healer, and what happened to the history."""

    healed_turns: int
    healed_prefix_tokens: int
    nonlinear: int
    close_unresolved: int
    forks: int
    rollbacks: int
    retries: int
    resets: int


@dataclass(frozen=True, slots=True)
class Turns:
    """A stretch of the turn table."""

    lines: list[NodeLine]
    start: int
    stop: int
    total: int

    @property
    def before(self) -> int | None:
        """Start of the stretch before."""
        return max(0, self.start - TURNS_SHOWN) if self.start else None

    @property
    def after(self) -> int | None:
        """Start of the stretch behind."""
        return self.stop if self.stop < self.total else None


@dataclass(frozen=True, slots=True)
class SamplesFact:
    """What would be trained, in a line."""

    unavailable: str | None
    rows: int
    dropped: int
    generated: int
    trained: int
    masked: dict[str, int]


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One entry of the audit log."""

    at: datetime
    user: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Everything on the page."""

    session: Identity
    counters: Counters
    facts: ForestFacts
    picture: Picture
    drawn_from: int
    """Seq of the first node in the picture."""
    turns: Turns
    outside: list[RecordLine]
    """Newest records that reached no tree."""
    events: list[EventLine]
    rewards: list[RewardLine]
    samples: SamplesFact
    actions: list[ActionLine]
    """What operators did by hand, newest first."""


@page
def session_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """The page, or its twin. `?turns=N` begins the turn table at node N, `?chains=open` draws every node."""
    session = read_session(request, session_id, "session")
    if session_id != session.id.hex:  # one address for one session, to be sent around
        query = request.GET.copy()
        query.pop("_changelist_filters", None)
        return HttpResponseRedirect(session_url(session.id) + (f"?{query.urlencode()}" if query else ""))
    value = build(session, number(request, "turns", -1), open_chains=request.GET.get("chains") == "open")
    links = {
        name: list_url(name, session=session.id.hex) for name in ("node", "record", "historyevent", "reward")
    }
    return shown(
        request,
        "session.html",
        f"Session {session.id.hex}",
        value,
        links=links,
        may=may_operate(request.user),
        may_purge=may_purge(request.user),
    )


def build(session: Session, turns_from: int, *, open_chains: bool) -> SessionPage:
    """The page's value. A negative `turns_from` shows the newest turns."""
    drawn_from = max(0, session.next_seq - MOST_DRAWN)
    lines = load_lines(session.id, drawn_from, session.next_seq)
    training = training_of(session, load_leaf_tokens(session.id))
    return SessionPage(
        session=identity(session),
        counters=_counters(session),
        facts=load_facts(session.id),
        picture=draw(
            lines,
            session.active_seq,
            None if training.unavailable else {seq: fate.trained for seq, fate in training.nodes.items()},
            rollback=session.history_policy == "rollback",
            collapse=len(lines) > COLLAPSE_ABOVE and not open_chains,
        ),
        drawn_from=drawn_from,
        turns=_turns(session, lines, drawn_from, turns_from),
        outside=record_lines(session.id, node_seq__isnull=True),
        events=event_lines(session.id),
        rewards=reward_lines(session.id),
        samples=SamplesFact(
            training.unavailable,
            len(training.rows),
            len(training.dropped),
            training.generated,
            training.trained,
            training.masked,
        ),
        actions=_actions(session),
    )


def _actions(session: Session) -> list[ActionLine]:
    entries = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(Session), object_id=str(session.pk)
    )
    lines = entries.order_by("-action_time").values_list("action_time", "user__username", "change_message")
    return [ActionLine(*line) for line in lines[:TURNS_SHOWN]]


def _turns(session: Session, drawn: list[NodeLine], drawn_from: int, asked: int) -> Turns:
    newest = max(0, session.next_seq - TURNS_SHOWN)
    start = min(asked, max(session.next_seq - 1, 0)) if asked >= 0 else newest
    stop = min(start + TURNS_SHOWN, session.next_seq)
    if start >= drawn_from:
        return Turns(drawn[start - drawn_from : stop - drawn_from], start, stop, session.next_seq)
    return Turns(load_lines(session.id, start, stop), start, stop, session.next_seq)


def identity(session: Session) -> Identity:
    """The session's row in words."""
    canonical = uses_linear_form(session.history_policy, healing=session.healing)
    return Identity(
        id=session.id.hex,
        status=session.status,
        deleted=session.deleted_at is not None,
        profile=session.profile.name,
        renderer=session.profile.renderer,
        backend=session.profile.backend,
        matcher="canonical form" if canonical else session.message_matcher,
        rollout=session.rollout_id,
        attempt=session.attempt_id,
        group=session.group_id,
        active=session.active_seq,
        **_same_names(session),  # type: ignore[arg-type]
    )


def _same_names(session: Session) -> Mapping[str, object]:
    names = (
        "history_policy", "on_nonlinear", "on_truncated", "retry_policy", "healing", "passthrough", "harness",
        "group_size", "labels", "sampling", "finish_status", "finish_metadata", "created_at",
        "last_activity_at", "finished_at",
    )  # fmt: skip
    return {name: getattr(session, name) for name in names}


def _counters(session: Session) -> Counters:
    return Counters(
        healed_turns=session.healed_turns,
        healed_prefix_tokens=session.healed_prefix_tokens,
        nonlinear=session.nonlinear,
        close_unresolved=session.close_unresolved,
        forks=session.forks,
        rollbacks=session.rollbacks,
        retries=session.retries,
        resets=session.resets,
    )
