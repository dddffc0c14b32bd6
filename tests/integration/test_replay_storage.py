"""Full replay rows: every turn's payload repeats its prefix, but what is stored, read and held does not."""

import base64
import io
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from sessions_app.models import SidePayload, UnattachedReply
from tests.client import Client, reply_of, user
from tests.exports.exporting import export, rows
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server
from tests.integration.servers import toy_environment
from trainer_export.renderers import profile_renderer
from trainer_export.samples.codec import decode_samples

LAYERS, EXPERTS = 2, 2
ROW = LAYERS * EXPERTS * 4
IDS = [104, 105, 258]


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as fake:
        yield fake


def environment(engine: FakeEngine) -> dict[str, str]:
    profile_renderer.cache_clear()
    told = {"TITO_ROUTING_REPLAY": "on", "TITO_INDEXER_REPLAY": "on", "TITO_R3_LAYERS": str(LAYERS)}
    return toy_environment(engine, "sglang") | told


class Engine:
    """Answers with full rows of both kinds; the rows of a position depend on the position and `salt`."""

    def __init__(self, fake: FakeEngine, client: Client) -> None:
        self._fake = fake
        self._client = client
        self.sent: list[bytes] = []

    def turn(self, session: str, history: list[Any], salt: int = 0, **reply: Any) -> Any:
        """One turn, whose length is measured by asking for it once without rows."""
        size = len(self._length(history)) + len(IDS) - 1
        payload = (np.arange(size * ROW // 4, dtype="<i4") + salt).tobytes()
        self.sent.append(payload)
        told = base64.b64encode(payload).decode()
        riders = {"routed_experts": told, "indexer_topk": told, "indexer_topk_num_layers": LAYERS}
        self._fake.script(Reply(IDS, meta=riders, **reply))
        return self._client.chat(session, history)

    def _length(self, history: list[Any]) -> list[int]:
        probe = self._client.create()
        for end in range(1, len(history) + 1, 2):
            self._fake.script(Reply(IDS))
            self._client.chat(probe, history[:end])
        ids: list[int] = self._fake.bodies[-1]["input_ids"]
        return ids


def told(client: Client, session: str, query: str = "") -> list[bytes]:
    """The payloads that the records of a path show, the active one's where the query names none."""
    records = client.call("GET", f"/sessions/{session}?{query}").json["records"]
    metas = [one["response"]["choices"][0]["meta_info"] for one in records]
    for meta in metas:
        assert meta["routed_experts"] == meta["indexer_topk"]
    return [base64.b64decode(meta["routed_experts"]) for meta in metas]


def kept(session: str) -> list[tuple[int, int]]:
    """Bytes left out and bytes stored, by node."""
    found = SidePayload.objects.filter(session_id=session, kind="routed_experts").order_by("node_seq")
    return [(one.prefix_bytes, len(one.payload)) for one in found]


def test_what_the_parent_holds_is_not_stored_again_and_is_told_all_the_same(engine):
    with running_server(environment(engine)) as url:
        client = Client(url)
        spoken, session, history = Engine(engine, client), client.create(), [user("a")]
        for _ in range(4):
            history += [reply_of(spoken.turn(session, history)), user("b")]
        assert told(client, session) == spoken.sent
        assert told(client, session, "after=1&limit=2") == spoken.sent[1:3]
        history = [*history[:2], user("another")]
        spoken.turn(session, history)
        assert told(client, session) == [spoken.sent[0], spoken.sent[4]]
    sizes = [len(payload) for payload in spoken.sent]
    assert kept(session) == [
        (0, sizes[0]),
        *((before, after - before) for before, after in pairwise(sizes[:4])),
        (sizes[0], sizes[4] - sizes[0]),
    ]


def test_taking_the_migration_back_makes_every_payload_whole(engine):
    with running_server(environment(engine)) as url:
        client = Client(url)
        spoken, session, history = Engine(engine, client), client.create(), [user("a")]
        for _ in range(3):
            history += [reply_of(spoken.turn(session, history)), user("b")]
        spoken.turn(session, [*history[:2], user("another")])
    migration = import_module("sessions_app.migrations.0015_side_payload_rest")
    with transaction.atomic():
        migration.whole_again(None, SimpleNamespace(connection=connection))
        found = SidePayload.objects.filter(session_id=session).order_by("node_seq", "kind")
        assert [bytes(one.payload) for one in found[::2]] == spoken.sent
        assert [bytes(one.payload) for one in found[1::2]] == spoken.sent
        assert not found.exclude(prefix_bytes=0).exists()
        transaction.set_rollback(True)


def test_rows_that_were_computed_anew_are_stored_whole(engine):
    with running_server(environment(engine)) as url:
        client = Client(url)
        spoken, session, history = Engine(engine, client), client.create(), [user("a")]
        for salt in (0, 7, 7):
            history += [reply_of(spoken.turn(session, history, salt)), user("b")]
        assert told(client, session) == spoken.sent
    sizes = [len(payload) for payload in spoken.sent]
    assert kept(session) == [(0, sizes[0]), (0, sizes[1]), (sizes[1], sizes[2] - sizes[1])]


def test_a_reply_that_came_too_late_is_kept_with_all_of_its_rows(engine):
    gate = threading.Event()
    with running_server(environment(engine)) as url, ThreadPoolExecutor(1) as pool:
        client = Client(url)
        spoken, session = Engine(engine, client), client.create(history_policy="rollback")
        history = [user("a"), reply_of(spoken.turn(session, [user("a")])), user("b")]
        slow = pool.submit(spoken.turn, session, history, gate=gate)
        engine.wait_seen(len(engine.bodies) + 3)
        engine.script(Reply(IDS))
        client.chat(session, history)
        gate.set()
        assert slow.result().headers["x-tito-recorded"] == "false"
    late = UnattachedReply.objects.get(session_id=session)
    assert (bytes(late.routed_experts), bytes(late.indexer_topk)) == (spoken.sent[1], spoken.sent[1])


def test_turns_at_once_keep_what_each_adds_to_their_parent(engine):
    gates = [threading.Event(), threading.Event()]
    with running_server(environment(engine)) as url, ThreadPoolExecutor(2) as pool:
        client = Client(url)
        spoken, session = Engine(engine, client), client.create()
        history = [user("a"), reply_of(spoken.turn(session, [user("a")]))]
        calls = []
        for gate, text in zip(gates, ("b", "cc"), strict=True):
            seen = len(engine.bodies)
            calls.append(pool.submit(spoken.turn, session, [*history, user(text)], gate=gate))
            engine.wait_seen(seen + 3)
        for gate, call in zip(gates, calls, strict=True):
            gate.set()
            assert call.result().headers["x-tito-recorded"] == "true"
        assert [told(client, session, f"leaf={leaf}") for leaf in (1, 2)] == [
            [spoken.sent[0], spoken.sent[1]],
            [spoken.sent[0], spoken.sent[2]],
        ]
    assert [left_out for left_out, _ in kept(session)] == [0, len(spoken.sent[0]), len(spoken.sent[0])]


def test_a_dump_that_is_loaded_elsewhere_tells_the_same(engine, tmp_path):
    with running_server(environment(engine)) as url:
        client = Client(url)
        spoken, session, history = Engine(engine, client), client.create(), [user("a")]
        for _ in range(3):
            history += [reply_of(spoken.turn(session, history)), user("b")]
        dump = tmp_path / "dump.jsonl"
        dump.write_bytes(client.call("GET", f"/api/sessions/{session}/dump").body)
        written = io.StringIO()
        call_command("session_load", str(dump), "--new-id", stdout=written)
        (loaded,) = re.findall(r"[0-9a-f]{32}", written.getvalue())[-1:]
        assert loaded != session
        assert told(client, loaded) == spoken.sent


def test_samples_and_exports_hand_out_the_rows_of_the_last_merged_turn(engine, tmp_path, settings):
    with running_server(environment(engine)) as url:
        client = Client(url)
        spoken, session, history = Engine(engine, client), client.create(), [user("a")]
        for salt in (0, 0, 7, 7):
            history += [reply_of(spoken.turn(session, history, salt)), user("b")]
        answer = client.call("POST", f"/sessions/{session}/samples", {})
        assert answer.status == 200, answer.body
        limit = len(spoken.sent[1]) // ROW + 1
        short = client.call("POST", f"/sessions/{session}/samples", {"max_seq_len": limit})
    settings.TITO = replace(settings.TITO, r3_layers=LAYERS)  # the server that ended brought back another's
    export(tmp_path, sessions=[session])
    (whole,), (cut,) = decode_samples(answer.body).samples, decode_samples(short.body).samples
    (row,) = rows(tmp_path)
    for name in ("routed_experts", "indexer_topk"):
        assert whole[f"rollout_{name}"].tobytes() == spoken.sent[3]
        assert cut[f"rollout_{name}"].tobytes() == spoken.sent[1]
        assert np.asarray(row[name], np.int32).tobytes() == spoken.sent[3]
