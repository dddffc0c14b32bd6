"""The three lanes of a node's path as cells: equal stretches folded, every difference with its class."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import Missing, node_seq, page, session_of, shown
from sessions_app.admin.readers import READERS, Reading
from sessions_app.insight.drift import (
    CLASSES,
    EXPECTED,
    Conversation,
    Difference,
    DriftView,
    Lane,
    compare_lanes,
    load_conversation,
)
from sessions_app.insight.spelling import spell
from sessions_app.insight.tokens import Reader
from sessions_app.models import Session
from sessions_app.presentation.addresses import node_url, session_url

CONTEXT = 8
"""Equal ids shown on each side of a difference."""
MOST_HUNKS = 100
MOST_CELLS = 400
"""Ids of one lane of one hunk."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One id of a lane."""

    id: int
    text: str
    special: bool
    differs: bool
    """It stands in a stretch that is not equal in all lanes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of difference."""

    name: str
    meaning: str
    expected: bool


@dataclass(frozen=True, slots=True)
class LaneCells:
    """One lane of a hunk."""

    name: str
    start: int
    """Index of its first id that differs."""
    cells: list[Cell]
    hidden: int
    """Ids left out because there are too many."""
    kinds: list[Kind]
    """Classes of its differences from the served lane."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Differences that stand close together, with what is equal around them."""

    number: int
    equal_before: int
    """Equal ids between it and the hunk before."""
    lanes: list[LaneCells]


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
    session = session_of(session_id)
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
    runs = _runs(view)
    hunks = [
        Hunk(number, _gap(runs, number), [_lane(view, at, run, reader) for at in _shown(view)])
        for number, run in enumerate(runs[:MOST_HUNKS])
    ]
    end = runs[-1][-1].block.bounds[0][1] if runs else 0
    return DiffPage(
        session_id=session.id.hex,
        node=seq,
        unavailable=None,
        lanes=[_summary(lane) for lane in view.lanes],
        hunks=hunks,
        total=len(view.differences),
        equal_after=len(view.lanes[0].ids) - end,
        classes=CLASSES,
    )


def _runs(view: DriftView) -> list[list[Difference]]:
    """Differences in groups: those of a group have less equal ids between them than are shown around each."""
    runs: list[list[Difference]] = []
    for difference in view.differences:
        start = difference.block.bounds[0][0]
        if runs and start - runs[-1][-1].block.bounds[0][1] <= 2 * CONTEXT:
            runs[-1].append(difference)
        else:
            runs.append([difference])
    return runs


def _gap(runs: Sequence[Sequence[Difference]], number: int) -> int:
    before = runs[number - 1][-1].block.bounds[0][1] if number else 0
    return runs[number][0].block.bounds[0][0] - before


def _shown(view: DriftView) -> list[int]:
    return [at for at, lane in enumerate(view.lanes) if lane.unavailable is None]


def _summary(lane: Lane) -> LaneSummary:
    kinds = [mismatch.type for mismatch in lane.mismatches]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return LaneSummary(lane.name, len(lane.ids), lane.ignored, lane.unavailable, counts)


def _lane(view: DriftView, at: int, run: Sequence[Difference], reader: Reader) -> LaneCells:
    lane = view.lanes[at]
    start, end = run[0].block.bounds[at][0], run[-1].block.bounds[at][1]
    first = max(0, start - CONTEXT)
    wanted = min(end + CONTEXT, len(lane.ids))
    stop = min(wanted, first + MOST_CELLS)
    changed = [range(*difference.block.bounds[at]) for difference in run]
    ids = lane.ids[first:stop].tolist()
    spelled = spell(ids, reader.decode)
    return LaneCells(
        name=lane.name,
        start=start,
        cells=[
            Cell(number, spelling.text, number in reader.special_ids, any(place in one for one in changed))
            for place, (number, spelling) in enumerate(zip(ids, spelled, strict=True), first)
        ],
        hidden=wanted - stop,
        kinds=[
            Kind(name, CLASSES[name], name in EXPECTED)
            for name in dict.fromkeys(difference.kinds[at] for difference in run)
            if name is not None
        ],
    )
