"""The cause of an attachment in a growing forest, by the same rules and in the same order as serving.
Pure."""

import json
from collections.abc import Sequence

from sessions_app.history.causes import Cause
from sessions_app.history.classify import classify
from sessions_app.history.nearness import Nearness, nearness
from sessions_app.history.passing import counted
from sessions_app.history.policies import Position
from sessions_app.history.walk import match_length
from sessions_app.insight.what_if.asked import Request
from sessions_app.insight.what_if.forest import GrowingForest, Grown, Keys

_COMPARED = 32
"""Siblings looked at for the closest one, newest first."""
UNRELATED = frozenset({Cause.UNRELATED_HISTORY, Cause.SUBAGENT, Cause.SIDE_CALL, Cause.COMPACTION})
"""One cause under its finer names, which take more than the messages to tell."""

_BEFORE_A_SUMMARY = (
    Cause.MESSAGE_EDITED,
    Cause.MESSAGE_INSERTED,
    Cause.MESSAGE_REMOVED,
    Cause.ASSISTANT_EDITED,
)
"""How a compaction may look to those who do not read what its messages say."""


def cause_of(
    forest: GrowingForest, asked: Request, keys: Keys, decided: Position, active: Grown | None
) -> Cause:
    """Why a request attached as decided. `active`: the active path's end, where the policy looked at it."""
    retried = forest.latest_asked(keys[-1] if keys else None, asked.identity)
    if retried is not None and (active is not None or retried.parent == decided.attach):
        return Cause.RETRY
    other = _other_head(forest, asked, keys, decided, active)
    if other is not None:
        return _head_change(other.asked, asked)
    closest = active or _closest(forest, asked, keys, decided)
    if closest is None:
        return _named(asked)
    stored, replayed = counted(closest.path, forest.matcher), counted(asked.messages, forest.matcher)
    matched = match_length(stored, replayed, forest.matcher)
    cause = classify(stored, replayed, forest.matcher, matched)
    named = cause is Cause.UNRELATED_HISTORY or (
        cause in _BEFORE_A_SUMMARY and asked.cause == Cause.COMPACTION
    )
    return _named(asked) if named else cause


def _named(asked: Request) -> Cause:
    """An unrelated history under the name that serving gave it."""
    stored = Cause(asked.cause) if asked.cause else None
    return stored if stored in UNRELATED else Cause.UNRELATED_HISTORY


def _other_head(
    forest: GrowingForest, asked: Request, keys: Keys, decided: Position, active: Grown | None
) -> Grown | None:
    """What the request would have continued, had its head not changed."""
    if active is not None:
        same = active.key is not None and active.key in keys
        return active if same and active.asked.identity != asked.identity else None
    found = forest.deepest(asked.messages, keys, None)
    if found is None or found.asked.identity == asked.identity:
        return None
    reached = _reached(forest, asked, keys, decided)
    return found if forest.reached(found, asked.messages, keys) > reached else None


def _reached(forest: GrowingForest, asked: Request, keys: Keys, decided: Position) -> int:
    """Messages of a request that replay the path it attaches to."""
    if decided.attach is None:
        return 0
    return forest.reached(forest.nodes[decided.attach], asked.messages, keys)


def _head_change(before: Request, after: Request) -> Cause:
    if before.tokenizer_fingerprint != after.tokenizer_fingerprint:
        return Cause.TOKENIZER_CHANGED
    if before.template_fingerprint != after.template_fingerprint:
        return Cause.TEMPLATE_CHANGED
    if _canonical(before.tools) != _canonical(after.tools):
        return Cause.TOOLS_CHANGED
    return Cause.TEMPLATE_KWARGS_CHANGED


def _canonical(tools: str | None) -> str | None:
    return None if tools is None else json.dumps(json.loads(tools), sort_keys=True)


def _closest(forest: GrowingForest, asked: Request, keys: Keys, decided: Position) -> Grown | None:
    """The leaf of the path beside the attach point that the request comes nearest to."""
    siblings: Sequence[int] = forest.children.get(decided.attach, [])[-_COMPARED:]
    if not siblings:
        return None
    rest = counted(asked.messages[_reached(forest, asked, keys, decided) :], forest.matcher)

    def near(seq: int) -> Nearness:
        return nearness(counted(forest.nodes[seq].delta, forest.matcher), rest, forest.matcher)

    return forest.newest_leaf(max(siblings, key=lambda seq: (near(seq), seq)))
