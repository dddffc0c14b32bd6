"""Where spans of a trace belong that do not say so themselves. Pure.

A span belongs to the session of the calls below it; one with none below it to that of the nearest span above
it that has one; else to the only session of the trace. What is above spans of several sessions belongs to
none.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Place(Generic[S]):
    """A span of one trace."""

    span_id: str
    parent_id: str | None
    session: S | None
    """None: to be found."""


def homes(places: Iterable[Place[S]]) -> dict[str, S]:
    """Sessions of the spans that had none, by span id; spans that belong to no single one are absent."""
    by_id: dict[str, Place[S]] = {}
    for place in places:
        if place.span_id not in by_id or place.session is not None:
            by_id[place.span_id] = place
    sessions = {place.session for place in by_id.values() if place.session is not None}
    only = next(iter(sessions)) if len(sessions) == 1 else None
    climb = _Climb(by_id, _sessions_below(by_id), only)
    found = {place.span_id: climb.home(place) for place in by_id.values() if place.session is None}
    return {span_id: session for span_id, session in found.items() if session is not None}


def _sessions_below(by_id: Mapping[str, Place[S]]) -> dict[str, set[S]]:
    """Sessions at and below each span, at most two of them: two are as good as many."""
    below: dict[str, set[S]] = {}
    for place in by_id.values():
        session, at = place.session, by_id.get(place.span_id)
        while session is not None and at is not None:
            marked = below.setdefault(at.span_id, set())
            if session in marked or len(marked) == 2:
                break
            marked.add(session)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
    return below


class _Climb(Generic[S]):
    """Walks up to what decides, and remembers it for all spans on the way."""

    def __init__(self, by_id: Mapping[str, Place[S]], below: Mapping[str, set[S]], only: S | None) -> None:
        self._by_id = by_id
        self._below = below
        self._only = only
        self._known: dict[str, S | None] = {}

    def home(self, place: Place[S]) -> S | None:
        """The session of a span."""
        way: list[str] = []
        at: Place[S] | None = place
        while at is not None and at.span_id not in self._known:
            self._known[at.span_id] = self._only  # what a cycle comes back to
            way.append(at.span_id)
            if at.session is not None or self._below.get(at.span_id):
                return self._remember(way, self._own(at))
            at = self._by_id.get(at.parent_id) if at.parent_id is not None else None
        return self._remember(way, self._known[at.span_id] if at is not None else self._only)

    def _own(self, place: Place[S]) -> S | None:
        if place.session is not None:
            return place.session
        below = self._below[place.span_id]
        return next(iter(below)) if len(below) == 1 else None

    def _remember(self, way: Iterable[str], session: S | None) -> S | None:
        for span_id in way:
            self._known[span_id] = session
        return session
