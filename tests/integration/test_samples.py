"""POST /sessions/{id}/samples against the whole server: shapes, refusals, what hooks get, what is read."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.api import runtime
from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server
from trainer_export.samples.codec import decode_samples

JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def toy(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine]]:
    with django_db_blocker.unblock(), toy_server(tmp_path_factory.mktemp("toy")) as pair:
        yield pair


def ask(client: Client, session: str, body: Any = None, **headers: str) -> Answer:
    return client.call("POST", f"/sessions/{session}/samples", body, {**JSON, **headers})


def samples(client: Client, session: str, body: Any = None) -> list[dict[str, Any]]:
    answer = ask(client, session, body)
    assert answer.status == 200, answer.body
    return answer.json["samples"]


def forked(client: Client, engine: FakeEngine, **options: Any) -> str:
    """CASE-13: two branches from one generated turn."""
    engine.script(
        Reply([1097, 1098, 2], message=says("ab")),
        Reply([102, 2], message=says("ok")),
        Reply([101, 2], message=says("hello")),
    )
    session = client.create(**options)
    first = reply_of(client.chat(session, [user("hello")]))
    client.chat(session, [user("hello"), first, user("ok")])
    client.chat(session, [user("hello"), first, user("ab")])
    return session


def test_a_shared_completion_trains_once(toy) -> None:
    """CASE-13."""
    rows = samples(toy[0], forked(*toy))
    assert [sum(row["loss_mask"]) for row in rows] == [5, 2]
    assert [row["metadata"]["leaf"]["node_id"] for row in rows] == [1, 2]
    assert samples(toy[0], forked(*toy))[0]["tokens"] == rows[0]["tokens"]


def truncated(client: Client, engine: FakeEngine, **options: Any) -> str:
    """CASE-14: a cut turn, an attempt to go on, the first turn again."""
    engine.script(
        Reply([1097, 1098], message=says("ab"), finish="length"),
        *[Reply([102, 2], message=says("ok"))] * (2 if options else 1),
    )
    session = client.create(**options)
    client.chat(session, [user("hello")], max_tokens=2)
    client.chat(session, [user("hello"), says("ab"), user("go on")])
    client.chat(session, [user("hello")])
    return session


def test_a_retry_supersedes_a_cut_turn(toy) -> None:
    """CASE-14."""
    assert [row["status"] for row in samples(toy[0], truncated(*toy))] == ["completed"]


def test_a_cut_turn_that_was_closed_goes_on_and_its_close_is_masked(toy) -> None:
    """CASE-14, on_truncated=close."""
    first, second = samples(toy[0], truncated(*toy, on_truncated="close"))
    assert first["status"] == second["status"] == "completed"
    assert first["tokens"][9:12] == [1097, 1098, 2]
    assert first["loss_mask"][:3] == [1, 1, 0]


def test_parallel_answers_to_one_request_are_both_kept(toy) -> None:
    import threading

    client, engine = toy
    gate = threading.Event()
    held = Reply([102, 2], message=says("ok"), gate=gate)
    engine.script(held, held)
    session = client.create()
    before = len(engine.requests)
    threads = [threading.Thread(target=client.chat, args=(session, [user("hello")])) for _ in range(2)]
    for thread in threads:
        thread.start()
    engine.wait_seen(before + 2)
    gate.set()
    for thread in threads:
        thread.join()
    assert len(samples(client, session)) == 2


def test_both_encodings_say_the_same(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    blob = client.call("POST", f"/sessions/{session}/samples", {"metadata": {"reward": 2}})
    assert blob.headers["content-type"] == "application/octet-stream"
    decoded = decode_samples(blob.body)
    document = ask(client, session, {"metadata": {"reward": 2}}).json
    for ours, theirs in zip(decoded.samples, document["samples"], strict=True):
        assert ours["reward"] == theirs["reward"] == 2
        assert ours["tokens"].tolist() == theirs["tokens"]
        assert ours["rollout_log_probs"].tolist() == theirs["rollout_log_probs"]
        assert theirs["rollout_routed_experts"] is None
        assert ours["metadata"] == theirs["metadata"]
    assert decoded.session_metadata == document["session_metadata"]


@pytest.mark.parametrize("accept", ["*/*", "application/octet-stream, application/json", ""])
def test_safetensors_is_the_default(toy, accept: str) -> None:
    answer = ask(toy[0], forked(*toy), accept=accept)
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"\xff", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"[]", "invalid_argument"),
        (b"null", "invalid_argument"),
        (b"7", "invalid_argument"),
        (b'{"max_seq_len": "10"}', "invalid_argument"),
        (b'{"max_seq_len": 1.0}', "invalid_argument"),
        (b'{"max_seq_len": true}', "invalid_argument"),
    ],
)
def test_odd_arguments_are_refused(toy, body: bytes, code: str) -> None:
    answer = ask(toy[0], forked(*toy), body)
    assert (answer.status, answer.code) == (400, code)
    assert list(answer.json) == ["error"]


@pytest.mark.parametrize("limit", [0, -5, -(10**30), 3])
def test_a_budget_that_nothing_fits_gives_an_empty_answer(toy, limit: int) -> None:
    answer = ask(toy[0], forked(*toy), {"max_seq_len": limit}).json
    assert (answer["samples"], answer["empty_reason"]) == ([], "all_truncated")


def test_a_session_without_turns_has_no_records(toy) -> None:
    client, _ = toy
    for options in ({}, {"history_policy": "rollback"}, {"history_policy": "linear"}):
        answer = ask(client, client.create(**options), {"metadata": {"a": 1}}).json
        assert (answer["samples"], answer["empty_reason"]) == ([], "no_records")
        assert ("agent" in answer["session_metadata"]) == (options != {"history_policy": "rollback"})


def test_unknown_and_deleted_sessions_are_not_found(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    client.call("DELETE", f"/sessions/{session}")
    for gone in (session, "0" * 32, "nonsense"):
        answer = ask(client, gone, b"{")
        assert (answer.status, answer.code) == (404, "session_not_found")


def test_what_a_hook_refuses_is_plain_text(toy) -> None:
    answer = ask(toy[0], forked(*toy), {"metadata": [1]})
    assert (answer.status, answer.code) == (422, "samples_failed")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.body == (
        b"session sample hook failed (picker=drop_superseded, postprocessor=default): "
        b"'list' object has no attribute 'get'"
    )


def test_get_on_the_path_is_the_raw_proxy(toy) -> None:
    client, engine = toy
    answer = client.call("GET", f"/sessions/{forked(client, engine)}/samples")
    assert (answer.status, answer.json) == (404, {"error": "path not proxied: samples"})


def test_linear_sessions_carry_their_healer_in_every_sample(toy) -> None:
    client, engine = toy
    answer = ask(client, forked(client, engine, history_policy="linear")).json
    healer = answer["session_metadata"]["linear_healer"]
    assert healer == {"healed_turns": 1, "healed_prefix_tokens": 13, "nonlinear": 1, "close_unresolved": 0}
    assert answer["session_metadata"]["tree"]["leaves"]
    assert answer["samples"]
    assert all(sample["metadata"]["linear_healer"] == healer for sample in answer["samples"])
    assert all("linear_healer" not in s["metadata"] for s in samples(client, forked(client, engine)))


def test_session_metadata_is_that_of_get(toy) -> None:
    client, engine = toy
    for policy in ("tree", "linear", "rollback"):
        session = forked(client, engine, history_policy=policy)
        assert ask(client, session).json["session_metadata"] == client.get(session)["metadata"]


def test_rolled_back_turns_are_in_no_sample(toy) -> None:
    client, engine = toy
    [row] = samples(client, forked(client, engine, history_policy="rollback"))
    assert row["tokens"][-2:] == [101, 2]
    assert "leaf" not in row["metadata"]
    assert "reward" not in row


def test_the_number_of_statements_does_not_grow(toy) -> None:
    client, engine = toy
    small, large = client.create(), client.create()
    for session, turns in ((small, 1), (large, 6)):
        messages = [user("hello")]
        for _ in range(turns):
            engine.script(Reply([100, 2], message=says("ab")))
            messages = [*messages, reply_of(client.chat(session, messages)), user("ok")]
    counts = []
    for session in (small, large):
        before = runtime.current().db.statements
        samples(client, session)
        counts.append(runtime.current().db.statements - before)
    assert counts[0] == counts[1] <= 8


def test_numbers_and_escapes_of_metadata_survive(toy) -> None:
    body = b'{"metadata": {"n": 12345678901234567890123, "s": "\\ud800", "f": 0.1}}'
    [row, _] = samples(toy[0], forked(*toy), body)
    assert json.dumps(row["metadata"]["n"]) == "12345678901234567890123"
    assert row["metadata"]["s"] == "\ud800"
