"""Turns of an engine that renders the messages itself: its ids are observed, and attached where they go on
from the stored ones.

Invariant: a node's tokens begin with its parent's, minus at most the boundary ids that the renderer may trim.
What does not is a new root; policy `rollback`, which never branches, refuses it (reference 4.6).
"""

from dataclasses import replace

from sessions_app.errors import PrefixMismatch
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.packing import Ids
from sessions_app.store.values import NewEvent
from sessions_app.turns import prompting, recording
from sessions_app.turns.prepare import Prepared
from sessions_app.turns.prompting import Prompt


def observed(prepared: Prepared, served: Ids, fed: Ids, *, max_trim: int) -> Prepared:
    """The turn as the engine was really fed. `served`: ids of the attach point."""
    prepared = replace(prepared, events=tuple(e for e in prepared.events if e.cause != Cause.BOUNDARY_TRIM))
    if prepared.parent is None:
        return replace(prepared, prompt=Prompt(fed, fed, 0, 0, 0))
    shared = prompting.common_prefix(served, fed)
    trim = len(served) - shared
    if trim <= max_trim and len(fed) > shared:
        return _continued(prepared, Prompt(fed, fed[shared:], trim, 0, shared))
    return _forked(prepared, served, fed, shared)


def _continued(prepared: Prepared, prompt: Prompt) -> Prepared:
    counters = prepared.counters
    healed = prompt.reused if counters.healed_turns else 0
    trimmed = (prompting.trim_event(prompt),) if prompt.trim else ()
    return replace(
        prepared,
        prompt=prompt,
        events=(*prepared.events, *trimmed),
        counters=replace(counters, healed_prefix_tokens=healed),
    )


def _forked(prepared: Prepared, served: Ids, fed: Ids, shared: int) -> Prepared:
    assert prepared.parent is not None
    event = NewEvent(
        "fork",
        Cause.ENGINE_RERENDER,
        compared_seq=prepared.parent.node.seq,
        token_index=shared,
        detail=f"the first {shared} of {len(served)} served ids were fed again",
    )
    return replace(
        prepared,
        parent=None,
        kind=AttachKind.FORK,
        cause=Cause.ENGINE_RERENDER,
        prompt=Prompt(fed, fed, 0, 0, 0),
        raw=recording.raw_delta(prepared.request, None, 0, None),
        events=(*prepared.events, event),
        counters=replace(prepared.counters, forks=1, healed_turns=0, healed_prefix_tokens=0),
    )


def check_prefix(prepared: Prepared, served: Ids, tokens: Ids, *, max_trim: int) -> None:
    """Policy `rollback`: what is to be stored extends what is. `tokens`: fed and sampled.

    Raises PrefixMismatch with the first line of the reference's text.
    """
    if prepared.settings.history_policy != "rollback" or prepared.parent is None:
        return
    checked = len(served) - max_trim
    matched = prompting.common_prefix(served[: max(checked, 0)], tokens)
    if matched >= checked:
        return
    raise PrefixMismatch(
        f"pretokenized prefix mismatch: stored {len(served)} tokens (checking first {checked}, allowing "
        f"{max_trim} trailing) are not a prefix of prompt_token_ids + completion_token_ids "
        f"({len(tokens)} tokens), first mismatch at index {matched}, matched {matched}/{checked} prefix "
        "tokens"
    )
