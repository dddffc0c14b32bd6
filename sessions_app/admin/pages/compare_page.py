"""Two nodes beside each other: what they share, where their messages part, and where their ids part."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from sessions_app.admin.pages.hunks import Change, Hunk, LaneIds, hunks_of
from sessions_app.admin.pages.serving import Missing, node_seq, page, read_session, shown
from sessions_app.admin.readers import READERS
from sessions_app.insight.alignment import align
from sessions_app.insight.forest import NodeLine, load_lines
from sessions_app.insight.messages import StoredMessage, load_path_messages
from sessions_app.insight.paths import TokenPath, load_path
from sessions_app.models import Session

_PLACE = re.compile(r"([0-9a-f]{32}):(\d{1,10})\Z")
_SHOWN = 20
"""Messages of each side behind the place where they part."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two."""

    session_id: str
    node: NodeLine
    messages: list[StoredMessage]
    """From the first message that differs, as far as they are shown."""
    message_total: int


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything on the page."""

    sides: list[Side]
    shared_messages: int
    """Leading messages with the same text."""
    shared_node: int | None
    """The last node that both paths go through."""
    shared_ids: int
    """Leading ids that are the same."""
    unavailable: str | None
    hunks: list[Hunk]
    total: int
    equal_after: int


@page
def compare_page(request: HttpRequest) -> HttpResponse:
    """The page, or its twin: `?a=SESSION:SEQ&b=SESSION:SEQ`."""
    places = [_place(request, name) for name in ("a", "b")]
    value = build(places)
    return shown(request, "compare.html", "Compare", value, address=reverse("admin:tito_compare"))


def _place(request: HttpRequest, name: str) -> tuple[Session, int]:
    found = _PLACE.match(request.GET.get(name, ""))
    if found is None:
        raise Missing(f"{name!r} must name a node as SESSION:SEQ. Choose one on a node's page.")
    session = read_session(request, found[1], "comparison")
    return session, node_seq(session, int(found[2]))


def build(places: Sequence[tuple[Session, int]]) -> ComparePage:
    """The page's value."""
    nodes = [_node(session, seq) for session, seq in places]
    messages = [load_path_messages(session.id, seq) for session, seq in places]
    paths = [load_path(session.id, seq) for session, seq in places]
    shared = _shared([[message.body for message in side] for side in messages])
    names = [f"{session.id.hex[:8]}:{seq}" for session, seq in places]
    sides = [
        _side(session, node, side, shared)
        for (session, _), node, side in zip(places, nodes, messages, strict=True)
    ]
    return _compared(places[0][0], sides, names, paths, shared)


def _node(session: Session, seq: int) -> NodeLine:
    lines = load_lines(session.id, seq, seq + 1)
    if not lines:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    return lines[0]


def _side(session: Session, node: NodeLine, messages: list[StoredMessage], shared: int) -> Side:
    rest = messages[shared : shared + _SHOWN]
    return Side(session.id.hex, node, rest, len(messages))


def _shared(sides: Sequence[Sequence[object]]) -> int:
    pairs = enumerate(zip(*sides, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(map(len, sides)))


def _compared(
    session: Session, sides: list[Side], names: list[str], paths: list[TokenPath], shared: int
) -> ComparePage:
    same_session = sides[0].session_id == sides[1].session_id
    on_path = [[span.turn.seq for span in path.spans] for path in paths]
    both = _shared(on_path) if same_session else 0
    reading = READERS.reading(session.profile, paths[0].tokenizers | paths[1].tokenizers)
    hunks: list[Hunk] = []
    total, equal_after = 0, 0
    blocks = align(
        [path.ids for path in paths], reading.reader.special_ids if reading.reader else frozenset()
    )
    changes = [Change(block, (None, None)) for block in blocks if not block.equal]
    if reading.reader is not None:
        lanes = [LaneIds(name, path.ids, True) for name, path in zip(names, paths, strict=True)]
        found = hunks_of(lanes, changes, reading.reader, {}, frozenset())
        hunks, equal_after = found.hunks, found.equal_after
        total = len(changes)
    return ComparePage(
        sides=sides,
        shared_messages=shared,
        shared_node=on_path[0][both - 1] if both else None,
        shared_ids=blocks[0].bounds[0][1] if blocks and blocks[0].equal else 0,
        unavailable=reading.unavailable,
        hunks=hunks,
        total=total,
        equal_after=equal_after,
    )
