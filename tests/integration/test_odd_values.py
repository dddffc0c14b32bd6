"""Values that a database, a stack or a template might choke on: served whole, or refused with a record."""

import json
from typing import Any

import pytest

from sessions_app.models import Message, Record
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply, Status
from tests.integration.test_bad_input import toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says, tree

Toy = tuple[Client, FakeEngine]
PLAIN = '{"messages": [{"role": "user", "content": "hello"}]}'


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def ask(client: Client, session: str, body: bytes):
    return client.call("POST", f"/sessions/{session}/v1/chat/completions", body)


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-32"),
        b'{"messages": [{"role": "user", "content": "hello", "name": "\xed\xa0\x80"}]}',
        b'{"model":"a\\u0000\\ud800","lora_path":"\\u0000","messages":[{"role":"user","content":"hello"}]}',
        b'{"messages": [{"role": "us\\u0000er", "content": "he\\u0000llo"}]}',
        b'{"user": "\\ud800", "\\u0000": 1, "messages": [{"role": "user", "content": "hello"}]}',
        b'{"seed": 123456789012345678901234567890, "messages": [{"role": "user", "content": "hello"}]}',
        b'{"chat_template_kwargs": {"a": "\\ud800"}, "messages": [{"role": "user", "content": "hello"}]}',
        b'{"messages": [{"role": "user", "content": "hello", "x": %s}]}' % nested(350).encode(),
        b'{"x": %s, "messages": [{"role": "user", "content": "hello"}]}' % nested(350).encode(),
    ],
)
def test_what_python_reads_as_json_is_stored_shown_and_extended(toy: Toy, body: bytes) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    first = ask(client, session, body)
    sent = json.loads(body)
    again = {**sent, "messages": [*sent["messages"], reply_of(first), user("ok")]}
    second = ask(client, session, json.dumps(again).encode())
    assert second.headers["x-tito-attach"] == "append"
    shown = client.get(session)["records"][1]["request"]
    assert {name: shown[name] for name in sent} == {name: again[name] for name in sent}


@pytest.mark.parametrize("levels", [500, 900, 1000, 5000])
@pytest.mark.parametrize(
    "form",
    [
        '{"messages":[{"role":"user","content":"hello","x":%s}]}',
        '{"messages": [ {"role": "user", "content": "hello", "x": %s} ]}',
        '{"x":%s,"messages":[{"role":"user","content":"hello"}]}',
        '{"tools":[{"type":"function","function":{"name":"f","parameters":%s}}],'
        '"messages":[{"role":"user","content":"hello"}]}',
        '{"chat_template_kwargs":{"a":%s},"messages":[{"role":"user","content":"hello"}]}',
    ],
)
def test_deep_nesting_is_refused_before_anything_is_generated(toy: Toy, form: str, levels: int) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    calls = len(engine.requests)
    answer = ask(client, session, (form % nested(levels)).encode())
    assert (answer.status, answer.code) == (400, "invalid_json"), answer.body
    assert len(engine.requests) == calls
    assert list(Record.objects.filter(session_id=session).values_list("state", flat=True)) == ["refused"]


def test_what_looks_like_a_marker_of_the_store_comes_back_as_it_was(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    odd = {"$tito": "prompt"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"$tito": "logprobs"}}}
    message = says("ab", tool_calls=[call], extra={"$tito": "completion"})
    engine.script(Reply([100, 2], message=message))
    first = client.chat(session, [{**user("hello"), "x": odd}], metadata=odd, other={**odd, "more": 1})
    record = client.get(session)["records"][0]
    assert record["request"]["metadata"] == odd
    assert record["request"]["other"] == {**odd, "more": 1}
    assert record["request"]["messages"] == [{**user("hello"), "x": odd}]
    assert record["response"] == first.json


def generated(**changes: Any) -> dict[str, Any]:
    """A chat reply of two ids; `changes` by place: top, choice, message, meta."""
    meta = {"output_token_logprobs": [[-0.5, 100, None], [-0.25, 2, None]], "completion_tokens": 2}
    choice = {"index": 0, "message": says("ab") | changes.get("message", {}), "finish_reason": "stop"}
    choice |= {"meta_info": meta | changes.get("meta", {})} | changes.get("choice", {})
    top = {"id": "r1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return top | changes.get("top", {})


@pytest.mark.parametrize(
    "changes",
    [
        {"top": {"id": "a\x00b\ud800"}},
        {"top": {"id": None, "usage": None}},
        {"top": {"model": "\x00", "created": 123456789012345678901234567890}},
        {"choice": {"finish_reason": "st\x00op\ud800"}},
        {"choice": {"finish_reason": None}},
        {"meta": {"weight_version": "\x00\ud800"}},
        {"message": {"role": "user"}},
        {"message": {"content": "a\x00b"}},
        {"message": {"content": "é😀", "refusal": None}},
    ],
)
def test_odd_replies_are_stored_as_they_came_and_extended(toy: Toy, changes: dict[str, Any]) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    body = generated(**changes)
    engine.script(Status(200, {"Content-Type": "application/json"}, json.dumps(body).encode()))
    answer = client.chat(session, [user("hello")])
    assert answer.json == body
    assert client.get(session)["records"][0]["response"] == body
    engine.script(Reply([102, 2], message=says("ok")))
    extended = client.chat(session, [user("hello"), reply_of(answer), user("ok")])
    assert extended.headers["x-tito-attach"] == "append"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_passed_on_and_stored_as_it_came(toy: Toy, literal: str) -> None:  # noqa: F811
    """Contract 2.20; GET shows null, as the reference does."""
    client, engine = toy
    session = client.create()
    body = generated(message={"x": "@"}, meta={"rate": "@"}, top={"y": [None, "@"]})
    told = json.dumps(body).replace('"@"', literal)
    engine.script(Status(200, {"Content-Type": "application/json"}, told.encode()))
    sent = b'{"messages": [{"role": "user", "content": "hello", "x": [null, %b]}], "z": %b}'
    sent = sent % (literal.encode(), literal.encode())
    key = {"Idempotency-Key": "odd"}
    answer = client.call("POST", f"/sessions/{session}/v1/chat/completions", sent, key)
    assert answer.status == 200, answer.body
    assert repr(answer.json) == repr(json.loads(told))
    asked = engine.requests[-1].body
    assert repr(asked["messages"][0]["x"]) == repr([None, json.loads(literal)])
    assert repr(asked["z"]) == repr(json.loads(literal))
    bodies = list(
        Message.objects.filter(session_id=session).order_by("position").values_list("body", flat=True)
    )
    assert [literal in text for text in bodies] == [True, True]
    record = Record.objects.get(session_id=session)
    assert repr(json.loads(record.response)["y"]) == repr([None, json.loads(literal)])
    assert repr(json.loads(record.request_params)["z"]) == repr(json.loads(literal))
    shown = client.get(session)["records"][0]
    assert (shown["request"]["z"], shown["response"]["y"]) == (None, [None, None])
    again = client.call("POST", f"/sessions/{session}/v1/chat/completions", sent, key)
    assert again.body == answer.body
    streamed = sent[:-1] + b', "stream": true}'
    engine.script(Status(200, {"Content-Type": "application/json"}, told.encode()))
    chunk = client.call("POST", f"/sessions/{session}/v1/chat/completions", streamed)
    assert chunk.status == 200


def test_clients_get_every_choice_without_replay_payloads_and_the_record_keeps_them(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    body = generated(meta={"routed_experts": "AAAAAA==", "indexer_topk": None, "last": 1})
    other = {"index": 1, "message": says("zz"), "meta_info": {"routed_experts": "AAAA", "kept": 1}}
    body["choices"].append(other)
    engine.script(Status(200, {"Content-Type": "application/json"}, json.dumps(body).encode()))
    first, second = client.chat(session, [user("hello")]).json["choices"]
    assert not {"routed_experts", "indexer_topk"} & first["meta_info"].keys()
    assert second["meta_info"] == {"kept": 1}
    kept = client.get(session)["records"][0]["response"]
    assert json.dumps(kept) == json.dumps(body)  # in the engine's own order


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"choice": {"message": None}}, "upstream_null_content"),
        ({"meta": {"completion_tokens": 3}}, "upstream_token_count_mismatch"),
        ({"meta": {"output_token_logprobs": [[None, 100], [0, 2]]}}, "upstream_invalid_logprob"),
        ({"meta": {"output_token_logprobs": [[0, 100], [0, 2**40]]}}, "engine_token_mismatch"),
        ({"top": {"choices": []}}, "upstream_invalid_reply"),
        ({"top": {"created": json.loads(nested(600))}}, "upstream_invalid_reply"),
    ],
)
def test_a_reply_that_is_refused_is_kept_and_its_client_is_told(toy: Toy, changes: Any, code: str) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    before = client.call("GET", f"/sessions/{session}").body
    body = json.dumps(generated(**changes)).encode()
    engine.script(Status(200, {"Content-Type": "application/json"}, body))
    answer = client.chat(session, [user("hello")])
    assert (answer.status, answer.code) == (502, code)
    assert (answer.headers["x-tito-recorded"], answer.headers["x-tito-reason"]) == (
        "false",
        "failed_validation",
    )
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.get(session_id=session)
    assert (record.state, record.reason, record.response) == (
        "upstream_error",
        "failed_validation",
        body.decode(),
    )
    assert tree(client, session)["nodes"] == []


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "\u2028"])
def test_an_edit_of_odd_keys_is_an_event_like_any_other(toy: Toy, odd: str) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {odd: "1"}}, odd: 1}
    replies = [says("ab", tool_calls=[call]), says("ok"), says("ok")]
    engine.script(*[Reply([100, 2], message=message) for message in replies])
    client.chat(session, [user("hello")])
    for other in ({**call, odd: 2}, {**call, "function": {"name": "f", "arguments": {odd: "2"}}}):
        edited = [user("hello"), says("ab", tool_calls=[other]), user("ok")]
        answer = client.chat(session, edited)
        if answer.code != "invalid_messages":  # a lone surrogate in a text cannot be tokenised
            assert answer.headers["x-tito-cause"] == "assistant_edited"
    assert client.call("GET", f"/api/sessions/{session}/events").status == 200
