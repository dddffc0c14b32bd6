"""Where each request of a session would attach under a setup. Pure: the decisions are those of serving.

The forest grows with each request that was answered and is not refused; its reply is the stored one. Requests
that were refused are placed too, and grow nothing: nobody knows their replies. Invariant: under the session's
own setup every request of a session that was served one turn at a time attaches where it did attach, and what
was refused is refused (tested).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.errors import NonlinearHistory, RollbackTooDeep
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.policies import Position, position_linear, position_rollback, position_tree
from sessions_app.history.policies.linear import nonlinear
from sessions_app.insight.what_if.asked import Asked, Refused, Request
from sessions_app.insight.what_if.explain import cause_of
from sessions_app.insight.what_if.forest import GrowingForest, Grown, Keys
from sessions_app.insight.what_if.setup import Setup

_RENDERED_ANEW = frozenset(
    {Cause.CLOSE_UNRESOLVED, Cause.TEMPLATE_NOT_APPEND_ONLY, Cause.RENDERER_REFUSED, Cause.ENGINE_RERENDER}
)
"""Causes of turns whose path matched, but whose ids the renderer could not continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What would become of a request."""

    parent: int | None
    kind: AttachKind | None
    """None: refused."""
    cause: Cause | None
    refused: str | None
    """Code of the refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Verdict):
    """What would have become of a request that was answered."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned(Verdict):
    """What would have become of a request that was refused."""

    request: Refused


@dataclass(frozen=True, slots=True)
class Replayed:
    """A whole session under a setup."""

    placed: list[Placed]
    """Requests that were answered, in commit order."""
    turned: list[Turned]
    """Requests that were refused, in the order they came."""
    forest: GrowingForest


def replay(requests: Sequence[Asked], setup: Setup, refused: Sequence[Refused] = ()) -> Replayed:
    """All requests of a session, those that were answered in commit order."""
    forest = GrowingForest(setup.matcher)
    placed: list[Placed] = []
    turned: list[Turned] = []
    waiting = deque(refused)
    for asked in requests:
        while waiting and waiting[0].after <= len(placed):
            turned.append(_turn(forest, setup, waiting.popleft()))
        placed.append(_place(forest, setup, asked))
    return Replayed(placed, [*turned, *(_turn(forest, setup, one) for one in waiting)], forest)


def _place(forest: GrowingForest, setup: Setup, asked: Asked) -> Placed:
    """Where an answered request attaches; the forest grows by it."""
    keys = forest.keys_of(asked.messages)
    found = _verdict(forest, setup, asked, keys)
    if found.kind is not None:
        forest.add(asked, found.parent, keys)
        forest.passthrough = forest.passthrough or found.kind is AttachKind.PASSTHROUGH
    return Placed(
        seq=asked.seq, parent=found.parent, kind=found.kind, cause=found.cause, refused=found.refused
    )


def _turn(forest: GrowingForest, setup: Setup, request: Refused) -> Turned:
    """Where a refused request would attach; the forest stays as it is."""
    found = _verdict(forest, setup, request, forest.keys_of(request.messages))
    return Turned(
        request=request, parent=found.parent, kind=found.kind, cause=found.cause, refused=found.refused
    )


def _verdict(forest: GrowingForest, setup: Setup, asked: Request, keys: Keys) -> Verdict:
    active = _active(forest, setup)
    try:
        decided = _decided(forest, setup, asked, keys, active)
    except (RollbackTooDeep, NonlinearHistory) as error:
        return Verdict(parent=None, kind=None, cause=None, refused=error.code)
    if _refuses_role(forest, setup, asked, keys, decided):
        cause = Cause.ROLE_NOT_APPENDABLE
        return Verdict(parent=decided.attach, kind=None, cause=cause, refused="role_not_appendable")
    return _attached(forest, asked, keys, decided, active)


def _active(forest: GrowingForest, setup: Setup) -> Grown | None:
    """The active path's end, where the policy looks at it."""
    looks = setup.policy != "tree" and not forest.passthrough
    return forest.nodes[forest.active] if looks and forest.active is not None else None


def _decided(
    forest: GrowingForest, setup: Setup, asked: Request, keys: Keys, active: Grown | None
) -> Position:
    if setup.policy == "rollback":
        decided = _rollback(forest, setup, asked, keys, active)
    elif setup.policy == "linear":
        decided = _linear(forest, setup, asked, keys, active)
    else:
        decided = _tree(forest, asked, keys)
    stuck = setup.same_renderer and asked.cause is not None and Cause(asked.cause) in _RENDERED_ANEW
    return _anew(setup) if stuck and decided.attach is not None else decided


def _anew(setup: Setup) -> Position:
    """Where a turn stands whose path the renderer could not continue."""
    return nonlinear(setup.on_nonlinear, "") if setup.policy == "linear" else Position(None, AttachKind.FORK)


def _tree(forest: GrowingForest, asked: Request, keys: Keys) -> Position:
    found = forest.deepest(asked.messages, keys, asked.identity)
    return position_tree(
        found.checkpoint if found else None,
        has_children=found is not None and found.asked.seq in forest.children,
        forest_size=len(forest.nodes),
    )


def _rollback(
    forest: GrowingForest, setup: Setup, asked: Request, keys: Keys, active: Grown | None
) -> Position:
    path = forest.path(active.asked.seq) if active else []
    return position_rollback(
        [node.checkpoint for node in path],
        matched=forest.matched(active, asked.messages, keys) if active else 0,
        requested=len(asked.messages),
        max_discard=setup.max_rollback,
    )


def _linear(
    forest: GrowingForest, setup: Setup, asked: Request, keys: Keys, active: Grown | None
) -> Position:
    if forest.passthrough:
        found = forest.deepest(asked.messages, keys, None)
        again = found is None or found.asked.seq in forest.children
        kind = AttachKind.FORK if again else AttachKind.APPEND
        return Position(found.asked.seq if found else None, kind)
    extends = (
        active is not None
        and active.asked.identity == asked.identity
        and forest.matched(active, asked.messages, keys) >= len(active.path)
    )
    checkpoint = active.checkpoint if active else None
    return position_linear(checkpoint, extends=extends, on_nonlinear=setup.on_nonlinear, session_id="")


def _refuses_role(forest: GrowingForest, setup: Setup, asked: Request, keys: Keys, decided: Position) -> bool:
    """Policy `linear` leaves roles to the template."""
    if setup.append_roles is None or decided.attach is None or setup.policy == "linear":
        return False
    new = asked.messages[forest.reached(forest.nodes[decided.attach], asked.messages, keys) :]
    roles = [message.get("role") for message in new]
    return not all(isinstance(role, str) and role in setup.append_roles for role in roles)


def _attached(
    forest: GrowingForest, asked: Request, keys: Keys, decided: Position, active: Grown | None
) -> Verdict:
    kind, cause = decided.kind, None
    if kind is AttachKind.ROOT:
        cause = Cause.FIRST_TURN
    elif kind is not AttachKind.APPEND:
        stored = Cause(asked.cause) if asked.cause else None
        cause = stored if stored in _RENDERED_ANEW else cause_of(forest, asked, keys, decided, active)
        if kind is AttachKind.FORK and cause is Cause.RETRY:
            kind = AttachKind.RETRY
    return Verdict(parent=decided.attach, kind=kind, cause=cause, refused=None)
