"""Both worlds side by side: as the session was served, and as it would have been."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any
from uuid import UUID

from sessions_app.history.causes import AttachKind
from sessions_app.insight.what_if.asked import Asked, Requests
from sessions_app.insight.what_if.pairs import Pair, newly_accepted
from sessions_app.insight.what_if.renders import render_all, reused, rows_of_rerendering
from sessions_app.insight.what_if.setup import Setup
from sessions_app.insight.what_if.simulate import Placed, Replayed, Turned, replay
from sessions_app.rendering.protocol import Renderer

PAIRS_KEPT = 100
"""Pairs of one session that are listed; all are counted."""
CHANGES_KEPT = 200


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of a session's requests."""

    turns: int = 0
    refused: int = 0
    """By the policy. What would have been answered is not known, so that a request which would no longer be
    refused adds to no other count."""
    forks: int = 0
    """Retries among them."""
    retries: int = 0
    rollbacks: int = 0
    resets: int = 0
    """Passthroughs among them."""
    leaves: int = 0
    """Raw training rows with healing."""
    reused_tokens: int = 0
    """Stored ids fed again; of the world that was not served, by the lengths of the paths."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Change:
    """A turn that attaches otherwise."""

    seq: int
    before_kind: str
    before_parent: int | None
    before_cause: str | None
    after_kind: str
    """`refused` where it is not served."""
    after_parent: int | None
    after_cause: str | None


@dataclass(frozen=True, slots=True)
class Served:
    """A request that was refused and would be served."""

    record: int
    code: str
    """Of the refusal."""
    kind: str
    parent: int | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class SessionResult:
    """One session in both worlds."""

    session_id: str
    before: Tally
    after: Tally
    causes_before: Mapping[str, int]
    causes_after: Mapping[str, int]
    changes: list[Change]
    change_count: int
    served: list[Served]
    served_count: int
    pairs: list[Pair]
    pair_count: int
    rerendered_rows: int | None
    """Training rows of a pipeline that renders every turn anew; None where it was not asked for."""
    unavailable: str | None
    """Why renders are missing."""


def compare(
    session_id: str, found: Requests, own: Setup, changed: Setup, renderer: Renderer | str | None
) -> SessionResult:
    """A session under its own setup and under a changed one.

    `renderer`: counts ids and re-renders; None = not asked for, a text = why there is none.
    """
    requests = found.asked
    replayed = replay(requests, changed, found.refused)
    pairs = list(newly_accepted(requests, replayed, own.matcher, changed.matcher))
    changes = list(_changes(requests, replayed.placed))
    served = list(_served(replayed.turned))
    counted, rows, unavailable = _rendered(requests, replayed.placed, renderer)
    after_reused = counted if counted is not None else _reused(replayed)
    return SessionResult(
        session_id=session_id,
        before=_before(found),
        after=_after(replayed, after_reused),
        causes_before=_causes(asked.cause for asked in requests),
        causes_after=_causes(one.cause for one in replayed.placed),
        changes=list(islice(changes, CHANGES_KEPT)),
        change_count=len(changes),
        served=served[:CHANGES_KEPT],
        served_count=len(served),
        pairs=pairs[:PAIRS_KEPT],
        pair_count=len(pairs),
        rerendered_rows=rows,
        unavailable=unavailable,
    )


def _rendered(
    requests: Sequence[Asked], placed: Sequence[Placed], renderer: Renderer | str | None
) -> tuple[int | None, int | None, str | None]:
    if renderer is None or isinstance(renderer, str):
        return None, None, renderer
    try:
        rendered = render_all(requests, renderer)
    except Exception as error:
        return None, None, str(error) or type(error).__name__
    if any(asked.tokenizer_fingerprint != renderer.tokenizer_fingerprint for asked in requests):
        return reused(placed, rendered), None, "the sampled ids are of another tokenizer"
    return reused(placed, rendered), rows_of_rerendering(requests, placed, rendered), None


def _before(found: Requests) -> Tally:
    requests = found.asked
    kinds = Counter(asked.kind for asked in requests)
    inner = {asked.parent for asked in requests}
    return Tally(
        turns=len(requests),
        refused=len(found.refused),
        forks=kinds[AttachKind.FORK] + kinds[AttachKind.RETRY],
        retries=sum(asked.cause == "retry" for asked in requests),
        rollbacks=kinds[AttachKind.ROLLBACK],
        resets=kinds[AttachKind.RESET] + kinds[AttachKind.PASSTHROUGH],
        leaves=sum(asked.seq not in inner for asked in requests),
        reused_tokens=sum(asked.reused_tokens for asked in requests),
    )


def _after(replayed: Replayed, reused_tokens: int) -> Tally:
    kinds = Counter(one.kind for one in replayed.placed)
    return Tally(
        turns=len(replayed.placed) - kinds[None],
        refused=kinds[None] + sum(one.kind is None for one in replayed.turned),
        forks=kinds[AttachKind.FORK] + kinds[AttachKind.RETRY],
        retries=sum(one.cause == "retry" for one in replayed.placed),
        rollbacks=kinds[AttachKind.ROLLBACK],
        resets=kinds[AttachKind.RESET] + kinds[AttachKind.PASSTHROUGH],
        leaves=replayed.forest.leaves,
        reused_tokens=reused_tokens,
    )


def _reused(replayed: Replayed) -> int:
    """By stored lengths: a path that would be another one is about as long as it was."""
    nodes = replayed.forest.nodes
    return sum(
        min(nodes[one.parent].asked.total_tokens, nodes[one.seq].asked.prompt_tokens)
        for one in replayed.placed
        if one.parent is not None and one.kind is not None
    )


def _causes(causes: Iterable[str | None]) -> dict[str, int]:
    counted = Counter(str(cause) for cause in causes if cause not in (None, "first_turn"))
    return dict(counted.most_common())


def _changes(requests: Sequence[Asked], placed: Sequence[Placed]) -> Iterable[Change]:
    for asked, one in zip(requests, placed, strict=True):
        kind = str(one.kind) if one.kind is not None else "refused"
        if (kind, one.parent) != (asked.kind, asked.parent):
            cause = str(one.cause) if one.cause is not None else one.refused
            yield Change(asked.seq, asked.kind, asked.parent, asked.cause, kind, one.parent, cause)


def _served(turned: Sequence[Turned]) -> Iterable[Served]:
    for one in turned:
        if one.kind is not None:
            cause = str(one.cause) if one.cause is not None else None
            yield Served(one.request.record, one.request.code, str(one.kind), one.parent, cause)


@dataclass(frozen=True, slots=True)
class Report:
    """All sessions together."""

    changed: Mapping[str, object]
    """What was changed, by name."""
    sessions: int
    before: Tally
    after: Tally
    causes_before: Mapping[str, int]
    causes_after: Mapping[str, int]
    changed_turns: int
    served: int
    """Requests that were refused and would be served."""
    accepted_pairs: int
    rerendered_rows: int | None
    unavailable: Mapping[str, int]
    """Sessions without renders, by reason."""
    results: list[SessionResult]
    """Sessions in which something changes, those with most changes first."""

    @property
    def forks_saved(self) -> int:
        """Negative: forks that would be added."""
        return self.before.forks - self.after.forks

    @property
    def tokens_saved(self) -> int:
        """Ids that would not have to be tokenised again."""
        return self.after.reused_tokens - self.before.reused_tokens


RESULTS_KEPT = 200


def report_of(changed: Mapping[str, object], results: Sequence[SessionResult]) -> Report:
    """The sum of all sessions."""
    rows = [result.rerendered_rows for result in results if result.rerendered_rows is not None]
    ordered = sorted(results, key=lambda result: (-_differing(result), result.session_id))
    return Report(
        changed=changed,
        sessions=len(results),
        before=sum((result.before for result in results), Tally()),
        after=sum((result.after for result in results), Tally()),
        causes_before=_summed(result.causes_before for result in results),
        causes_after=_summed(result.causes_after for result in results),
        changed_turns=sum(result.change_count for result in results),
        served=sum(result.served_count for result in results),
        accepted_pairs=sum(result.pair_count for result in results),
        rerendered_rows=sum(rows) if rows else None,
        unavailable=Counter(result.unavailable for result in results if result.unavailable is not None),
        results=[result for result in ordered if _differing(result)][:RESULTS_KEPT],
    )


def _differing(result: SessionResult) -> int:
    return result.change_count + result.served_count + result.pair_count


def compared(report: Mapping[str, Any]) -> list[UUID]:
    """The sessions that a stored report quotes."""
    return [UUID(result["session_id"]) for result in report["results"]]


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total.most_common())
