"""The three lanes of a node's path as cells: equal stretches folded, every difference with its class."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.hunks import Change, Hunk, LaneIds, hunks_of
from sessions_app.admin.pages.serving import Missing, node_seq, page, read_session, shown
from sessions_app.admin.readers import READERS, Reading
from sessions_app.insight.drift import (
    CLASSES,
    EXPECTED,
    Conversation,
    DriftView,
    Lane,
    compare_lanes,
    load_conversation,
)
from sessions_app.insight.tokens import Reader
from sessions_app.models import Session
from sessions_app.presentation.addresses import node_url, session_url


@dataclass(frozen=True, slots=True)
class LaneSummary:
    """One lane as a whole."""

    name: str
    ids: int
    ignored: int
    unavailable: str | None
    kinds: dict[str, int]
    """Differences against the served ids, by the family's comparison: what `GET` of the session counts."""


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Everything on the page."""

    session_id: str
    node: int
    unavailable: str | None
    """Why nothing can be rendered."""
    lanes: list[LaneSummary]
    hunks: list[Hunk]
    total: int
    """Stretches that differ, in all hunks."""
    equal_after: int
    classes: dict[str, str]


@page
def diff_page(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """The page, or its twin."""
    session = read_session(request, session_id, "lanes")
    value = build(session, node_seq(session, seq))
    return shown(
        request,
        "diff.html",
        f"Lanes of node {seq}",
        value,
        session_url=session_url(session.id),
        node_url=node_url(session.id, seq),
    )


def build(session: Session, seq: int) -> DiffPage:
    """The page's value."""
    conversation = load_conversation(session.id, seq)
    if conversation is None:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    reading = READERS.reading(session.profile, [conversation.tokenizer_fingerprint])
    if reading.renderer is None or reading.reader is None:
        return _unavailable(session, seq, conversation, reading)
    view = compare_lanes(conversation, reading.renderer)
    return _page(session, seq, view, reading.reader)


def _unavailable(session: Session, seq: int, conversation: Conversation, reading: Reading) -> DiffPage:
    served = LaneSummary("served", len(conversation.served), 0, None, {})
    return DiffPage(session.id.hex, seq, reading.unavailable, [served], [], 0, 0, CLASSES)


def _page(session: Session, seq: int, view: DriftView, reader: Reader) -> DiffPage:
    lanes = [LaneIds(lane.name, lane.ids, lane.unavailable is None) for lane in view.lanes]
    changes = [Change(one.block, one.kinds) for one in view.differences]
    found = hunks_of(lanes, changes, reader, CLASSES, EXPECTED)
    return DiffPage(
        session_id=session.id.hex,
        node=seq,
        unavailable=None,
        lanes=[_summary(lane) for lane in view.lanes],
        hunks=found.hunks,
        total=len(changes),
        equal_after=found.equal_after,
        classes=CLASSES,
    )


def _summary(lane: Lane) -> LaneSummary:
    kinds = [mismatch.type for mismatch in lane.mismatches]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return LaneSummary(lane.name, len(lane.ids), lane.ignored, lane.unavailable, counts)
