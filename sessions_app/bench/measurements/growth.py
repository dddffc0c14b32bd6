"""What the two hundredth turn costs against the fifth, and what a long session leaves on disk."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from sessions_app.bench.load import Load, run
from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

_TURNS = 200
_PROMPT = _COMPLETION = 250
_EARLY, _LATE = slice(3, 8), slice(_TURNS - 5, _TURNS)
_LINEAR = ("parse", "engine")
"""Stages that read or send the whole context."""
_BYTES_A_TOKEN = 4
_BYTES_A_LOGPROB = 4
_DISK_LOAD = Load(agents=16, turns=50)


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    early, late = [], []
    for _ in range(sizes.growth_sessions):
        agent = await rig.agent(_COMPLETION)
        turns = [await agent.turn(_PROMPT, timed=True) for _ in range(_TURNS)]
        costs = [sum(ms for stage, ms in turn.stages.items() if stage not in _LINEAR) for turn in turns]
        early += costs[_EARLY]
        late += costs[_LATE]
    stored = rig.tables.bytes_of_session(agent.session)
    return {
        "added_latency_turn200_over_turn5": round(median(late) / median(early), 3),
        "added_latency_turn5_ms": round(median(early), 3),
        "added_latency_turn200_ms": round(median(late), 3),
        "session_200_turns_100k_tokens": stored | {"total": sum(stored.values())},
        "stored_over_whole_turns": round(sum(stored.values()) / _whole_turns(agent.conversation.size), 4),
        **await _on_disk(rig),
    }


def _whole_turns(text_bytes: int) -> int:
    """Bytes that storing each turn whole would take: its prompt and reply as ids, logprobs, messages."""
    tokens = sum((turn + 1) * (_PROMPT + _COMPLETION) for turn in range(_TURNS))
    text = sum(text_bytes * (turn + 1) // _TURNS for turn in range(_TURNS))
    return tokens * _BYTES_A_TOKEN + _TURNS * _COMPLETION * _BYTES_A_LOGPROB + text


async def _on_disk(rig: Rig) -> dict[str, Any]:
    """Growth of tables and indexes by turns of 64 + 64 tokens in conversations of 50."""
    before = rig.tables.bytes_on_disk()
    await run(rig, _DISK_LOAD)
    grown = rig.tables.bytes_on_disk() - before
    return {"bytes_per_turn": round(grown / _DISK_LOAD.total)}
