"""Replay payloads that go while they are read."""

import asyncio
import uuid
from typing import Any, cast

from sessions_app.store.pool import Executor
from sessions_app.store.side import load_payloads

GONE, THERE = uuid.uuid4(), uuid.uuid4()
KIND = "routed_experts"


class Discarding:
    """A session is removed between the statement that finds its payloads and the one that reads them."""

    def __init__(self) -> None:
        self._answers: list[list[tuple[Any, ...]]] = [
            [(GONE, 1, KIND, 0), (GONE, 1, KIND, 1), (THERE, 0, KIND, 0)],
            [(THERE, 0, KIND, b"rows")],
        ]

    async def fetch_all(self, query: str, params: Any) -> list[tuple[Any, ...]]:
        return self._answers.pop(0)


def test_a_payload_that_went_while_it_was_looked_for_is_left_out_like_an_absent_one() -> None:
    wanted = {(GONE, 1, KIND), (THERE, 0, KIND)}
    found = asyncio.run(load_payloads(cast(Executor, Discarding()), wanted))
    assert found == {(THERE, 0, KIND): (b"rows",)}
