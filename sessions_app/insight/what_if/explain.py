"""The cause of an attachment in a growing forest, by the same rules and in the same order as serving.
Pure."""

import json
from collections.abc import Sequence

from sessions_app.history.causes import Cause
from sessions_app.history.classify import classify
from sessions_app.history.policies import Position
from sessions_app.history.walk import match_length
from sessions_app.insight.what_if.asked import Request
from sessions_app.insight.what_if.forest import GrowingForest, Grown, Keys

_COMPARED = 32
"""Siblings looked at for the closest one, newest first."""
UNRELATED = frozenset({Cause.UNRELATED_HISTORY, Cause.SUBAGENT, Cause.SIDE_CALL, Cause.COMPACTION})
"""One cause under its finer names, which take more than the messages to tell."""


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
    closest = active or _closest(forest, asked, decided)
    if closest is None:
        return _named(asked)
    matched = match_length(closest.path, asked.messages, forest.matcher)
    cause = classify(closest.path, asked.messages, forest.matcher, matched)
    return _named(asked) if cause is Cause.UNRELATED_HISTORY else cause


def _named(asked: Request) -> Cause:
    """An unrelated history under the name that serving gave it."""
    stored = Cause(asked.cause) if asked.cause else None
    return stored if stored in UNRELATED else Cause.UNRELATED_HISTORY


def _other_head(
    forest: GrowingForest, asked: Request, keys: Keys, decided: Position, active: Grown | None
) -> Grown | None:
    """What the request would have continued, had its head not changed."""
    if active is not None:
        count = len(active.path)
        same = count <= len(keys) and keys[count - 1] is not None and keys[count - 1] == active.key
        return active if same and active.asked.identity != asked.identity else None
    found = forest.deepest(asked.messages, keys, None)
    if found is None or found.asked.identity == asked.identity:
        return None
    reached = len(forest.nodes[decided.attach].path) if decided.attach is not None else 0
    return found if len(found.path) > reached else None


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


def _closest(forest: GrowingForest, asked: Request, decided: Position) -> Grown | None:
    """The leaf of the path beside the attach point that shares most leading messages with the request."""
    siblings: Sequence[int] = forest.children.get(decided.attach, [])[-_COMPARED:]
    if not siblings:
        return None
    start = len(forest.nodes[decided.attach].path) if decided.attach is not None else 0
    rest = asked.messages[start:]
    best = max(siblings, key=lambda seq: (match_length(forest.nodes[seq].delta, rest, forest.matcher), seq))
    return forest.newest_leaf(best)
