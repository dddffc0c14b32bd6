"""Messages that count as the same under one matcher and not under the other, with the field that decides.
Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.history.differences import accepts, message_difference
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.insight.what_if.asked import Asked
from sessions_app.insight.what_if.simulate import Placed, Replayed


@dataclass(frozen=True, slots=True)
class Pair:
    """A stored message and a replayed one that now counts as the same."""

    seq: int
    """Node whose request replayed it first."""
    index: int
    field: str
    """The field in which the old matcher saw a difference."""
    stored: str | None
    replayed: str | None


def newly_accepted(
    requests: Sequence[Asked], replayed: Replayed, before: MessageMatcher, after: MessageMatcher
) -> Iterator[Pair]:
    """Every such pair once, in order of the requests that attached because of it."""
    if before.name == after.name and type(before) is type(after):
        return
    seen: set[tuple[int, int]] = set()
    by_seq = {asked.seq: asked for asked in requests}
    for placed in replayed.placed:
        if placed.parent is not None and placed.kind is not None:
            yield from _pairs(by_seq[placed.seq], placed, replayed, before, seen)


def _pairs(
    asked: Asked, placed: Placed, replayed: Replayed, before: MessageMatcher, seen: set[tuple[int, int]]
) -> Iterator[Pair]:
    assert placed.parent is not None
    path = replayed.forest.nodes[placed.parent].path
    for index, stored, spelled in _different(path, asked.messages, seen):
        if accepts(before, stored, spelled):
            continue
        difference = message_difference(index, stored, spelled, before)
        yield Pair(asked.seq, index, difference.path, difference.stored, difference.replayed)


def _different(
    path: Sequence[Message], messages: Sequence[Message], seen: set[tuple[int, int]]
) -> Iterable[tuple[int, Message, Message]]:
    """Pairs of two objects, each pair once; objects are shared between requests and outlive this."""
    for index, (stored, spelled) in enumerate(zip(path, messages, strict=False)):
        pair = id(stored), id(spelled)
        if stored is spelled or pair in seen:
            continue
        seen.add(pair)
        if stored != spelled:
            yield index, stored, spelled
