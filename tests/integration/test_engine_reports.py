"""What engines report beside ids is kept, whichever protocol they speak, and reaches samples; clients of
engines that return ids only see none of it."""

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sessions_app.backends.demo.model import R3_LAYERS
from sessions_app.models import Record, SidePayload, UnattachedReply
from tests.client import Client, reply_of, user
from tests.demo.engine import running_demo_engine
from tests.exports.exporting import export, rows
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server
from tests.integration.servers import toy_environment
from trainer_export.renderers import profile_renderer
from trainer_export.samples.codec import decode_samples

COUNTERS = {"spec_accept_token_num": 3, "spec_draft_token_num": 8, "spec_verify_ct": 2}
LAYERS, EXPERTS = 2, 2
IDS = [104, 105, 258]


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as fake:
        yield fake


def rows_of(count: int) -> bytes:
    """Routed experts of so many tokens, each row another."""
    return np.arange(count * LAYERS * EXPERTS, dtype="<i4").tobytes()


def encoded(payload: bytes) -> str:
    return base64.b64encode(payload).decode()


def environment(engine: FakeEngine, backend: str, **more: str) -> dict[str, str]:
    return toy_environment(engine, backend) | {"TITO_R3_LAYERS": str(LAYERS)} | more


@pytest.mark.parametrize("backend", ["sglang", "sglang-generate"])
def test_speculative_counters_are_stored_and_summed_into_samples(engine, backend, tmp_path):
    profile_renderer.cache_clear()
    with running_server(environment(engine, backend)) as url:
        client = Client(url)
        session, history = client.create(), [user("a")]
        for _ in range(2):
            engine.script(Reply(IDS, meta=COUNTERS, cached_tokens=4))
            history += [reply_of(client.chat(session, history)), user("b")]
        records = client.get(session)["records"]
        export(tmp_path, sessions=[session])
    for record, sent in zip(records, engine.bodies, strict=True):
        assert "$tito" not in record["response"]
        meta = record["response"]["choices"][0]["meta_info"]
        assert {name: meta[name] for name in COUNTERS} == COUNTERS
        assert [entry[1] for entry in meta["output_token_logprobs"]] == IDS
        reported = [
            meta[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "e2e_latency")
        ]
        assert reported == [len(sent["input_ids"]), len(IDS), 4, 0.25]
        assert meta["weight_version"] == "7"
    (row,) = rows(tmp_path)
    assert row["speculative"] == {
        "accepted": 6, "drafted": 16, "verifications": 4, "completion_tokens": 2 * len(IDS),
    }  # fmt: skip


@pytest.mark.parametrize("backend", ["sglang-generate", "vllm", "vllm-completions"])
def test_a_client_of_an_engine_of_ids_sees_no_meta_info_and_a_replay_says_the_same(engine, backend):
    with running_server(environment(engine, backend)) as url:
        client = Client(url)
        session = client.create(retry_policy="replay")
        engine.script(Reply(IDS))
        first, again = (client.chat(session, [user("a")]) for _ in range(2))
        shown = client.get(session)["records"][0]["response"]
    assert len(engine.requests) == 1
    assert again.json == first.json
    assert list(first.json) == ["id", "object", "created", "model", "choices", "usage"]
    assert list(first.json["choices"][0]) == ["index", "message", "finish_reason"]
    assert [entry[1] for entry in shown["choices"][0]["meta_info"]["output_token_logprobs"]] == IDS


@pytest.mark.parametrize("backend", ["sglang", "sglang-generate"])
def test_the_stop_text_is_told_again_with_a_replayed_message(engine, backend):
    body = {"model": "m", "max_tokens": 9, "stop_sequences": ["h"], "messages": [user("a")]}
    with running_server(environment(engine, backend)) as url:
        client = Client(url)
        session = client.create(retry_policy="replay")
        engine.script(Reply(IDS[:1], matched="h", meta={"matched_stop": "h"}))
        answers = [client.call("POST", f"/sessions/{session}/v1/messages", body) for _ in range(2)]
    assert [answer.json["stop_sequence"] for answer in answers] == ["h", "h"]


@pytest.mark.parametrize("backend", ["sglang", "sglang-generate"])
def test_routed_experts_are_asked_for_kept_beside_and_put_back(engine, backend):
    settings = environment(engine, backend, TITO_ROUTING_REPLAY="on", TITO_INDEXER_REPLAY="on")
    riders = {"routed_experts": rows_of(6), "indexer_topk": rows_of(3)}
    told = {kind: encoded(payload) for kind, payload in riders.items()}
    with running_server(settings) as url:
        client = Client(url)
        session = client.create()
        engine.script(Reply(IDS, meta={**told, "indexer_topk_num_layers": LAYERS}))
        answer = client.chat(session, [user("a")])
        meta = client.get(session)["records"][0]["response"]["choices"][0]["meta_info"]
    sent = engine.bodies[0]
    assert (sent["return_routed_experts"], sent["return_indexer_topk"]) == (True, True)
    assert b"routed_experts" not in answer.body
    assert {kind: meta[kind] for kind in riders} == told
    assert meta["indexer_topk_num_layers"] == LAYERS
    kept = SidePayload.objects.filter(session_id=session, node_seq=0)
    assert {each.kind: (bytes(each.payload), each.start_row) for each in kept} == {
        kind: (payload, None) for kind, payload in riders.items()
    }
    assert "routed_experts" not in json.loads(Record.objects.get(session_id=session).response)


@pytest.mark.parametrize("backend", ["sglang", "sglang-generate"])
@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
def test_additional_rows_start_behind_those_that_are_held(engine, backend, policy):
    """All rows of the ids held but the last one's, which no pass had seen; a rollback holds fewer again."""
    settings = environment(engine, backend, TITO_ROUTING_REPLAY="on", TITO_ADDITION_R3="on")
    with running_server(settings) as url:
        client = Client(url)
        session, history = client.create(history_policy=policy), [user("a")]
        for _ in range(3):
            engine.script(Reply(IDS, meta={"routed_experts": encoded(rows_of(2))}))
            history += [reply_of(client.chat(session, history)), user("b")]
        engine.script(Reply(IDS, meta={"routed_experts": encoded(rows_of(2))}))
        client.chat(session, [*history[:4], user("again")])
    held = [0, *(len(body["input_ids"]) + len(IDS) - 1 for body in engine.bodies[:2])]
    starts = [body["routed_experts_start_len"] for body in engine.bodies]
    assert starts[:3] == held
    assert starts[3] == {"tree": held[2], "rollback": held[2], "linear": 0}[policy]
    kept = SidePayload.objects.filter(session_id=session).order_by("node_seq")
    assert [each.start_row for each in kept] == starts


def test_a_late_reply_keeps_token_texts_and_rows(engine, admin_client):
    """Of everything that a reply says, nothing is lost with its place in the tree."""
    settings = environment(engine, "sglang", TITO_ROUTING_REPLAY="on", TITO_INDEXER_REPLAY="on")
    payload, texts = rows_of(4), [[-0.5, 104, "h"], [-0.25, 258, None]]
    riders = {"routed_experts": encoded(payload), "indexer_topk": encoded(payload)}
    gate = threading.Event()
    with running_server(settings) as url, ThreadPoolExecutor(1) as pool:
        client = Client(url)
        session, key = client.create(history_policy="rollback"), {"idempotency-key": "k"}
        engine.script(Reply([104, 258], meta={"output_token_logprobs": texts, **riders}, gate=gate))
        slow = pool.submit(client.chat, session, [user("a")], key)
        engine.wait_seen(1)
        engine.script(Reply(IDS))
        assert client.chat(session, [user("b")]).headers["x-tito-recorded"] == "true"
        gate.set()
        late = slow.result()
        again = client.chat(session, [user("a")], key)
    assert late.headers["x-tito-reason"] == "concurrent"
    assert late.json["choices"][0]["meta_info"]["output_token_logprobs"] == texts
    assert again.json == late.json
    kept = UnattachedReply.objects.get(session_id=session)
    assert (bytes(kept.routed_experts), bytes(kept.indexer_topk)) == (payload, payload)
    assert kept.routed_experts_start is None
    page = admin_client.get(f"/admin/sessions_app/unattachedreply/{kept.pk}/change/")
    assert page.status_code == 200
    assert b"node/-1" not in page.content


@pytest.mark.parametrize("backend", ["sglang", "sglang-generate", "vllm-chat", "vllm", "vllm-completions"])
def test_forced_sampling_reaches_the_engine_and_the_record_shows_what_the_client_asked_for(engine, backend):
    with running_server(environment(engine, backend)) as url:
        client = Client(url)
        session = client.create(sampling={"temperature": 0.5, "top_p": 1})
        engine.script(Reply(IDS, prompt_ids=None))
        client.chat(session, [user("a")], temperature=1.0, top_p=1.0, top_k=7)
    record = Record.objects.get(session_id=session)
    sent = json.loads(record.request_params)
    sampling = sent.get("sampling_params", sent)
    assert (sampling["temperature"], sampling["top_p"], sampling["top_k"]) == (0.5, 1, 7)
    asked = json.loads(record.client_params)
    assert (asked["temperature"], asked["top_p"]) == (1.0, 1.0)


def test_what_the_outgoing_body_says_is_not_stored_twice(engine):
    with running_server(environment(engine, "sglang")) as url:
        client = Client(url)
        session = client.create()
        client.chat(session, [user("a")], temperature=1.0, top_p=1.0)
    assert Record.objects.get(session_id=session).client_params is None


@pytest.mark.parametrize("additional", ["off", "on"])
@pytest.mark.parametrize("backend", ["sglang", "sglang-generate"])
def test_replay_rows_of_a_conversation_fit_its_sample(backend, additional):
    """One row for each token of the sample but the last, whichever way they were asked for."""
    with running_demo_engine() as (_, engine_url):
        settings = {
            "TITO_BACKEND": backend,
            "TITO_BACKEND_URL": engine_url,
            "TITO_ROUTING_REPLAY": "on",
            "TITO_INDEXER_REPLAY": "on",
            "TITO_ADDITION_R3": additional,
            "TITO_R3_LAYERS": str(R3_LAYERS),
        }
        with running_server(settings) as url:
            client = Client(url)
            session, history = client.create(), [user("hello")]
            for turn in range(3):
                history += [reply_of(client.chat(session, history)), user(f"and {turn}?")]
            answer = client.call("POST", f"/sessions/{session}/samples", {})
            assert answer.status == 200, answer.body
    (sample,) = decode_samples(answer.body).samples
    rows_needed = len(sample["tokens"]) - 1
    assert sample["rollout_routed_experts"].shape[:2] == (rows_needed, R3_LAYERS)
    assert sample["rollout_indexer_topk"].shape[:2] == (rows_needed, R3_LAYERS)
