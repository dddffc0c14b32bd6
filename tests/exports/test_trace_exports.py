"""Shapes that come from traces: exact ids from our checkpoints, a report of every span."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from tests.client import Client, reply_of, user
from tests.exports.exporting import export, rows, visible
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.spans_support import batch, send, span
from tests.integration.test_cases import says
from trainer_export.shapes import TRACE_SHAPES, layout_of
from trainer_export.shapes.checking import problems_of

BETTER = ("--traces", '{"mode": "better"}')
ANY_CALL = ("--traces", '{"llm_call_match": "^chat "}')


def talk(client: Client, engine: FakeEngine, turns: int = 2, **options: Any) -> tuple[str, list[str]]:
    """A session of plain turns, and the ids that its client was told."""
    session, messages, told = client.create(**options), [user("hello")], []
    for _ in range(turns):
        engine.script(Reply([100, 2], message=says("ab"), identity=f"chatcmpl-{uuid.uuid4().hex}"))
        answer = client.chat(session, messages)
        told.append(answer.json["id"])
        messages = [*messages, reply_of(answer), user("ok")]
    return session, told


def trace(told: list[str], number: int, agent: str = "solver") -> list[dict[str, Any]]:
    """What an instrumented agent sends: text only."""
    spans = [span(1, number, None, "run", start=1, end=99)]
    spans.append(span(2, number, 1, "agent", start=2, end=90, attributes={"agent.name": agent}))
    for at, response in enumerate(told):
        named = {"gen_ai.operation.name": "chat", "gen_ai.response.id": response}
        spans.append(span(10 + at, number, 2, "chat m", attributes=named, start=10 + at * 3, end=11 + at * 3))
    return spans


def traced(client: Client, engine: FakeEngine, **options: Any) -> tuple[str, int]:
    number = uuid.uuid4().int
    session, told = talk(client, engine, **options)
    answer = send(client, batch(*trace(told, number), tito__session_id=session))
    assert answer.json == {}
    return session, number


def reports(out: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in out.glob("*.traces.ndjson") for line in file.read_text().splitlines()
    ]


@pytest.mark.parametrize("shape", sorted(TRACE_SHAPES))
@pytest.mark.parametrize("format", ["parquet", "jsonl", "safetensors"])
@pytest.mark.parametrize("mode", [BETTER, ANY_CALL], ids=["better", "compat"])
def test_every_shape_in_every_format_is_what_it_says(
    toy, tmp_path: Path, shape: str, format: str, mode: tuple[str, str]
) -> None:
    session, _ = traced(*toy)
    report = export(tmp_path, "--format", format, "--shape", shape, "--check", *mode, sessions=[session])
    made = rows(tmp_path, layout_of(shape), format)
    assert [problems_of(layout_of(shape), row) for row in made] == [[]] * len(made)
    assert len(made) == (1 if shape == "trajectory" else 2), report
    assert report["proof"]["adds_up"]
    assert report["traces"]["spans"] == {"agent": 1, "call": 2, "structure": 1}


def test_ids_are_those_of_the_session(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, _ = traced(*toy)
    export(tmp_path / "t", "--shape", "triplets", *BETTER, sessions=[session])
    export(tmp_path / "j", "--shape", "trajectory", *BETTER, sessions=[session])
    first, second = rows(tmp_path / "t", layout_of("triplets"))
    tokens = client.tokens(session)
    assert [*second["prompt_ids"], *second["response_ids"]] == tokens
    assert first["agent_name"] == "solver"
    assert len(first["log_probs"]) == len(first["response_ids"]) == 2
    (row,) = rows(tmp_path / "j", layout_of("trajectory"))
    assert [*row["prompt_ids"], *row["response_ids"]] == tokens
    assert sum(row["loss_mask"]) == 4
    assert row["turn_indices"] == [0, 1]


def test_an_agent_filter_on_a_trace_of_text_selects_exact_ids(toy, tmp_path: Path) -> None:
    client, engine = toy
    number = uuid.uuid4().int
    session, told = talk(client, engine)
    spans = trace(told[:1], number)
    other = span(50, number, 1, "agent", start=40, end=60, attributes={"agent.name": "judge"})
    named = {"gen_ai.operation.name": "chat", "gen_ai.response.id": told[1]}
    call = span(51, number, 50, "chat m", attributes=named, start=41, end=42)
    send(client, batch(*spans, other, call, tito__session_id=session))
    options = json.dumps({"mode": "better", "agent_match": "^judge$"})
    export(tmp_path, "--shape", "triplets", "--traces", options, sessions=[session])
    (row,) = rows(tmp_path, layout_of("triplets"))
    assert [*row["prompt_ids"], *row["response_ids"]] == client.tokens(session)
    (told_of,) = reports(tmp_path)
    entries = {entry["span_id"][-2:]: entry["as"] for entry in told_of["spans"]}
    assert entries["0a"] == "agent_not_wanted"
    assert entries["33"] == "call"


def test_a_session_without_spans_gives_triplets_of_its_own_calls(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, _ = talk(*toy)
    client.call("POST", f"/sessions/{session}/rewards", {"value": 0.5})
    client.call("POST", f"/sessions/{session}/rewards", {"value": 0.25, "node": 0})
    for name, mode in (("compat", "{}"), ("better", '{"mode": "better"}')):
        export(tmp_path / name, "--shape", "triplets", "--traces", mode, sessions=[session])
        made = rows(tmp_path / name, layout_of("triplets"))
        assert [row["reward"] for row in made] == [0.25, 0.5]
        assert [row["final_reward"] for row in made] == [0.5, 0.5]
        assert [*made[1]["prompt_ids"], *made[1]["response_ids"]] == client.tokens(session)


def test_a_trace_with_ids_of_its_own_needs_none_of_our_calls(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, number = client.create(), uuid.uuid4().int
    ids = {"prompt_token_ids": [1, 2], "response_token_ids": [3]}
    call = span(1, number, None, "openai.chat.completion", attributes=ids)
    reward = {"agentlightning.reward.0.name": "primary", "agentlightning.reward.0.value": 0.75}
    send(
        client,
        batch(call, span(5, number, None, "agentlightning.annotation", attributes=reward),
              tito__session_id=session),
    )  # fmt: skip
    export(tmp_path, "--shape", "transition", sessions=[session])
    (row,) = rows(tmp_path, layout_of("transition"))
    assert (list(row["prompt_ids"]), list(row["response_ids"]), row["reward"]) == ([1, 2], [3], 0.75)
    assert (row["reward_position"], row["log_probs"], row["turn_reward"]) == (0, None, 0.75)


def test_the_same_bytes_again_whatever_arrived_in_between(toy, tmp_path: Path) -> None:
    from trainer_export.models import ExportJob

    client, _ = toy
    session, number = traced(*toy)
    export(tmp_path / "one", "--shape", "triplets", *BETTER, sessions=[session])
    job = ExportJob.objects.latest("created_at")
    send(client, batch(span(77, number, 1, "late"), tito__session_id=session))
    client.call("POST", f"/sessions/{session}/rewards", {"value": 1})
    export(tmp_path / "two", "--rerun", job.id.hex)
    for name in visible(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert any(name.endswith(".traces.ndjson") for name in visible(tmp_path / "two"))


def test_spans_that_wait_for_their_trace_are_placed_before_an_export(toy, tmp_path: Path) -> None:
    client, engine = toy
    session, told = talk(client, engine)
    send(client, batch(*trace(told, uuid.uuid4().int)))
    report = export(tmp_path, "--shape", "triplets", *BETTER, sessions=[session])
    assert report["traces"]["spans"] == {"agent": 1, "call": 2, "structure": 1}


def test_in_compat_a_rollout_is_its_newest_attempt(toy, tmp_path: Path) -> None:
    rollout = uuid.uuid4().hex
    sessions = [traced(*toy, rollout_id=rollout, attempt_id=attempt)[0] for attempt in ("1", "2")]
    report = export(tmp_path / "c", "--shape", "triplets", *ANY_CALL, sessions=sessions)
    assert report["dropped_sessions"] == {"earlier_attempt": 1}
    assert {row["session_id"] for row in rows(tmp_path / "c", layout_of("triplets"))} == {sessions[1]}
    export(tmp_path / "b", "--shape", "triplets", *BETTER, sessions=sessions)
    made = rows(tmp_path / "b", layout_of("triplets"))
    assert [row["attempt_id"] for row in made] == ["1", "1", "2", "2"]
    assert [row["rollout_weight"] for row in made] == [0.25] * 4


def test_what_the_reference_runs_into_is_reported_and_costs_one_session(toy, tmp_path: Path) -> None:
    client, _ = toy
    good, _ = traced(*toy)
    bad, number = client.create(), uuid.uuid4().int
    broken = {"agentlightning.reward.0.value": 1.0}
    send(client, batch(span(1, number, None, "chat m", attributes=broken), tito__session_id=bad))
    report = export(tmp_path, "--shape", "triplets", *ANY_CALL, sessions=[good, bad])
    assert report["dropped_sessions"] == {"failed": 1}
    assert report["failures"][0]["session"] == bad
    assert report["traces"]["spans"]["conversion_failed"] == 1
    assert report["rows"] == 2


def test_a_break_is_told_with_its_class_and_place(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, number = client.create(), uuid.uuid4().int
    turns = [([1, 2], [3]), ([1, 9, 3], [4])]
    spans = [
        span(at + 1, number, None, "chat m",
             attributes={"gen_ai.operation.name": "chat", "prompt_token_ids": prompt,
                         "response_token_ids": response})
        for at, (prompt, response) in enumerate(turns)
    ]  # fmt: skip
    send(client, batch(*spans, tito__session_id=session))
    for name, mode in (("compat", ANY_CALL), ("better", BETTER)):
        report = export(tmp_path / name, "--shape", "trajectory", *mode, sessions=[session])
        first, second = rows(tmp_path / name, layout_of("trajectory"))
        assert (list(first["mismatch"]), first["mismatch_index"]) == ([], None)
        assert (list(second["mismatch"]), second["mismatch_index"]) == (["others_mismatch"], 1)
        assert report["traces"]["mismatches"] == {"others_mismatch": 1}
        assert [first["continues_turn"], second["continues_turn"]] == [None, None]


@pytest.mark.parametrize("mode", [BETTER, ANY_CALL], ids=["better", "compat"])
def test_a_reply_that_lost_its_race_is_joined_as_such(toy, tmp_path: Path, mode: tuple[str, str]) -> None:
    client, engine = toy
    session, told = talk(client, engine, 1, history_policy="rollback")
    history = [user("hello"), {"role": "assistant", "content": "ab"}, user("ok")]
    gate, lost_id = threading.Event(), f"chatcmpl-{uuid.uuid4().hex}"
    engine.script(Reply([101, 2], message=says("x"), identity=lost_id, gate=gate))
    with ThreadPoolExecutor(1) as pool:
        seen = len(engine.requests)
        slow = pool.submit(client.chat, session, history)
        engine.wait_seen(seen + 1)
        engine.script(Reply([102, 2], message=says("y"), identity=f"chatcmpl-{uuid.uuid4().hex}"))
        client.chat(session, [*history[:-1], user("other")])
        gate.set()
        assert slow.result().headers["x-tito-recorded"] == "false"
    send(client, batch(*trace([told[0], lost_id], uuid.uuid4().int), tito__session_id=session))
    export(tmp_path, "--shape", "triplets", *mode, sessions=[session])
    found = {row["response_id"]: row for row in rows(tmp_path, layout_of("triplets"))}
    assert list(found[lost_id]["response_ids"]) == [101, 2]
    first = [*found[told[0]]["prompt_ids"], *found[told[0]]["response_ids"]]
    assert list(found[lost_id]["prompt_ids"])[: len(first)] == first
    entries = [entry for one in reports(tmp_path) for entry in one["spans"]]
    assert [entry["span_id"][-1] for entry in entries if "late_reply" in entry["remarks"]] == ["b"]


def test_every_earlier_call_is_tried_in_both_modes(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, number = client.create(), uuid.uuid4().int
    turns = [([1, 2], [3]), ([7], [8]), ([1, 2, 3, 4], [5]), ([7, 9], [9])]
    spans = [
        span(at + 1, number, None, "chat m",
             attributes={"gen_ai.operation.name": "chat", "prompt_token_ids": prompt,
                         "response_token_ids": response})
        for at, (prompt, response) in enumerate(turns)
    ]  # fmt: skip
    send(client, batch(*spans, tito__session_id=session))
    for shape, mode, expected in (
        ("transition", ANY_CALL, [None, None, 0, None]),
        ("transition", BETTER, [None, None, 0, None]),
        ("trajectory", ANY_CALL, [None, None, 0, None]),
        ("trajectory", BETTER, [None, None, None]),
    ):
        target = tmp_path / f"{shape}-{mode is BETTER}"
        export(target, "--shape", shape, *mode, sessions=[session])
        found = rows(target, layout_of(shape))
        assert [row["continues_turn"] for row in found] == expected
        chained = shape == "trajectory" and mode is ANY_CALL
        assert found[-1]["mismatch_index"] == (0 if chained else 1)


def test_numbers_that_no_vocabulary_has_stop_no_export(toy, tmp_path: Path) -> None:
    client, _ = toy
    session, number = client.create(), uuid.uuid4().int
    call = span(1, number, None, "chat m",
                attributes={"gen_ai.operation.name": "chat", "prompt_token_ids": [2**40],
                            "response_token_ids": [-1]})  # fmt: skip
    send(client, batch(call, tito__session_id=session))
    report = export(tmp_path / "compat", "--shape", "trajectory", *ANY_CALL, sessions=[session])
    assert "no vocabulary has" in report["failures"][0]["said"]
    report = export(tmp_path / "better", "--shape", "trajectory", *BETTER, sessions=[session])
    assert report["traces"]["spans"] == {"no_token_ids": 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("[]", "traces must be an object"),
        ('{"mode": "worst"}', "traces.mode must be one of"),
        ('{"agent_match": "("}', "no regular expression"),
        ('{"colour": 1}', "traces.unknown: 'colour'"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(toy, tmp_path: Path, options: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        export(tmp_path, "--shape", "triplets", "--traces", options)


def test_over_http_too(toy) -> None:
    client, _ = toy
    body = {"path": f"t-{uuid.uuid4().hex}", "shape": "trajectory", "rules": {"traces": {"mode": "better"}}}
    answer = client.call("POST", "/exports", body)
    assert answer.status in (200, 201, 202), answer.body
    bad = client.call("POST", "/exports", body | {"rules": {"traces": {"mode": "x"}}})
    assert (bad.status, bad.code) == (400, "invalid_argument")
