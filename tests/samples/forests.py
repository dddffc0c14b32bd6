"""Random forests: branches, retries, trims, cuts, empty completions, digests as a commit would store them."""

from typing import Any

from hypothesis import strategies as st

from tests.samples.builders import forest_of, turn
from trainer_export.samples.values import CutContinuation, SessionForest, Turn

MAX_TRIM = 1
FINISHES = ["stop", "stop", "stop", "tool_calls", "length", "abort", None]
IDS = st.integers(0, 5)
"""Few different ids, so that trimmed and repeated ones meet often."""


@st.composite
def forests(draw: st.DrawFn, policies: tuple[str, ...] = ("tree", "linear", "rollback")) -> SessionForest:
    """A session of up to twelve turns."""
    turns: list[Turn] = []
    for seq in range(draw(st.integers(1, 12))):
        turns.append(_turn(draw, turns, seq))
    policy = draw(st.sampled_from(policies))
    return forest_of(*turns, policy=policy, active=draw(st.integers(0, len(turns) - 1)))


def _turn(draw: st.DrawFn, turns: list[Turn], seq: int) -> Turn:
    parent = draw(st.one_of(st.none(), st.sampled_from(turns))) if turns else None
    trim = draw(st.integers(0, min(MAX_TRIM, parent.completion.size))) if parent else 0
    asked = float(draw(st.integers(0, 2 * seq)))
    cut = parent is not None and parent.finish_reason == "length"
    fields: dict[str, Any] = {
        "trim": trim,
        "finish_reason": draw(st.sampled_from(FINISHES)),
        "requested_at": asked,
        "request_digest": draw(st.sampled_from([None, b"a", b"b"])),
        "root_class": draw(st.sampled_from(["main", "subagent", None])),
        "agent": draw(st.sampled_from(["", "a", "b"])),
        "cut_continuation": draw(st.sampled_from(CutContinuation)) if cut else CutContinuation.NONE,
    }
    # A trimmed border is followed by at least one id more than was trimmed, as templates do.
    delta = draw(st.lists(IDS, min_size=1 + trim, max_size=4))
    completion = draw(st.lists(IDS, max_size=5))
    return turn(seq, None if parent is None else parent.seq, delta, completion, **fields)
