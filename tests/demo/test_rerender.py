"""The comparison with a render: every turn and every id counted once, wherever it first differs."""

from typing import Any

import pytest

from sessions_app.demo_agent.rerender import compare
from sessions_app.demo_agent.server import Opened

SERVED = list(range(100))
"""Ids of two turns: prompt 0-9, reply 10-29, prompt to 49, reply from 50 on; the second was sent twice."""
SPANS = [(10, 30), (50, 60), (50, 70)]
PATHS = {1: [0, 1], 2: [0, 2]}


class Scripted:
    """A server of one session whose render is given."""

    def __init__(self, rendered: list[int]) -> None:
        self._rendered = rendered
        self.discarded: list[str] = []
        self.asked: list[dict[str, Any]] = []

    async def open(self, **options: Any) -> Opened:
        assert options["healing"] is False
        return Opened("probe", "key")

    async def ask(self, session_id: str, body: dict[str, Any]) -> None:
        assert session_id == "probe"
        self.asked.append(body)

    async def discard(self, session_id: str) -> None:
        self.discarded.append(session_id)

    async def read(self, session_id: str, leaf: int | None = None) -> dict[str, Any]:
        if session_id == "probe":
            return self._probe()
        nodes = [{"id": at, "completion_span": list(span)} for at, span in enumerate(SPANS)]
        leaves = [{"node_id": end, "path_node_ids": path} for end, path in PATHS.items()]
        tokens = SERVED[: SPANS[leaf][1]] if leaf is not None else []
        return {
            "records": [{"request": {"model": "m", "messages": ["said"], "tools": None, "seed": 7}}],
            "metadata": {
                "tree": {"nodes": nodes, "leaves": leaves},
                "accumulated_token_ids": tokens,
                "tito_session_mismatch": [{}],
            },
        }

    def _probe(self) -> dict[str, Any]:
        end = len(self._rendered)
        tree = {"nodes": [{"id": 0, "completion_span": [end, end + 1]}]}
        return {"metadata": {"accumulated_token_ids": [*self._rendered, -1], "tree": tree}}


async def test_a_render_that_agrees_finds_nothing() -> None:
    found = await compare(Scripted(SERVED[:50]), "ours")
    assert (found.paths, found.drifted_paths, found.drifted_turns, found.misplaced_tokens) == (2, 0, 0, 0)
    assert found.sampled_tokens == 20 + 10 + 20
    assert found.text_differences == 2


@pytest.mark.parametrize(
    ("at", "turns", "misplaced"),
    [
        (5, 3, 50),
        (10, 2, 50),
        (25, 2, 5 + 30),
        (29, 2, 1 + 30),
        (30, 2, 30),
        (49, 2, 30),
    ],
)
async def test_drift_counts_from_its_first_id(at: int, turns: int, misplaced: int) -> None:
    rendered = [*SERVED[:at], 999, *SERVED[at + 1 : 50]]
    found = await compare(Scripted(rendered), "ours")
    assert (found.drifted_paths, found.drifted_turns, found.misplaced_tokens) == (2, turns, misplaced)


async def test_the_probe_sends_what_was_sent_and_is_removed() -> None:
    server = Scripted(SERVED[:50])
    await compare(server, "ours")
    assert server.asked == [{"model": "m", "messages": ["said"], "max_tokens": 1}] * 2
    assert server.discarded == ["probe"] * 2
