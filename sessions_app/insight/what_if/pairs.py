"""Messages that count as the same under one matcher and not under the other, with the field that decides.
Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.history.differences import accepts, message_difference
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.insight.what_if.asked import Asked, Request
from sessions_app.insight.what_if.simulate import Replayed, Verdict


@dataclass(frozen=True, slots=True)
class Pair:
    """A stored message and a replayed one that now counts as the same."""

    seq: int | None
    """Node whose request replayed it first; None where that one was refused."""
    record: int | None
    """Record of that request, where it was refused."""
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
        for found in _pairs(by_seq[placed.seq], placed, replayed, before, seen):
            yield Pair(placed.seq, None, *found)
    for turned in replayed.turned:
        for found in _pairs(turned.request, turned, replayed, before, seen):
            yield Pair(None, turned.request.record, *found)


def _pairs(
    asked: Request, verdict: Verdict, replayed: Replayed, before: MessageMatcher, seen: set[tuple[int, int]]
) -> Iterator[tuple[int, str, str | None, str | None]]:
    """Index, field and both values of each."""
    if verdict.parent is None or verdict.kind is None:
        return
    path = replayed.forest.nodes[verdict.parent].path
    for index, stored, spelled in _different(path, asked.messages, seen):
        if not accepts(before, stored, spelled):
            difference = message_difference(index, stored, spelled, before)
            yield index, difference.path, difference.stored, difference.replayed


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
