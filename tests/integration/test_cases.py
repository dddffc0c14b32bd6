"""Acceptance cases: what went wrong for others, held against a running server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server
from tests.toy import write_model, write_template


@contextmanager
def toy_server(
    folder: Path, template: str = "toy-chatml", **settings: str
) -> Iterator[tuple[Client, FakeEngine]]:
    environment = {
        "TITO_MODEL": str(write_model(folder / "model")),
        "TITO_CHAT_TEMPLATE": str(write_template(folder, template)),
        "TITO_RENDERER": "template",
        "TITO_BACKEND": "sglang",
        **settings,
    }
    with FakeEngine() as engine, running_server({"TITO_BACKEND_URL": engine.url, **environment}) as url:
        yield Client(url), engine


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[tuple[Client, FakeEngine]]:
    with toy_server(tmp_path) as pair:
        yield pair


def fed(engine: FakeEngine, call: int) -> list[int]:
    return engine.bodies[call]["input_ids"]


def tree(client: Client, session: str) -> dict[str, Any]:
    return client.get(session)["metadata"]["tree"]


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def test_a_first_turn_sent_again_does_not_poison_the_session(toy) -> None:
    """CASE-01."""
    client, engine = toy
    engine.script(
        Reply([1097, 1098, 2], message=says("ab")),
        Reply([101, 2], message=says("hello")),
        Reply([102, 2], message=says("ok")),
    )
    session = client.create()
    first = client.chat(session, [user("hello")])
    second = client.chat(session, [user("hello")])
    third = client.chat(session, [user("hello"), says("hello"), user("ok")])
    assert [answer.status for answer in (first, second, third)] == [200, 200, 200]
    assert fed(engine, 0) == fed(engine, 1)
    assert fed(engine, 2) == [1, 5, 3, 101, 2, 3, 1, 6, 3, 101, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
    nodes = tree(client, session)["nodes"]
    assert [node["parent"] for node in nodes] == [None, None, 1]
    assert second.headers["x-tito-attach"] == "retry"
    assert second.headers["x-tito-cause"] == "retry"


def test_a_refused_request_does_not_destroy_the_last_turn(toy) -> None:
    """CASE-02."""
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    first = reply_of(client.chat(session, [user("hello")]))
    history = [user("hello"), first, user("ab")]
    client.chat(session, history)
    before = client.call("GET", f"/sessions/{session}").body
    refused = client.chat(session, history, input_ids=[1, 2, 3])
    assert (refused.status, refused.code) == (400, "input_ids_not_allowed")
    assert client.call("GET", f"/sessions/{session}").body == before
    assert len(engine.requests) == 2


CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "grep", "arguments": '{"pattern":"x","path":"a"}'},
}
RESPELLED = {**CALL, "function": {"name": "grep", "arguments": '{"path": "a", "pattern": "x"}'}}


@pytest.mark.parametrize(("matcher", "leaves"), [("loose_tool_call", 1), ("strict", 2)])
def test_tool_arguments_in_another_spelling(toy, matcher: str, leaves: int) -> None:
    """CASE-03."""
    client, engine = toy
    session = client.create(message_matcher=matcher)
    engine.script(
        Reply([10, 102, 11, 2], message=says("", tool_calls=[CALL]), finish="tool_calls"),
        Reply([102, 2], message=says("ok")),
    )
    client.chat(session, [user("hello")])
    replay = says("", tool_calls=[RESPELLED])
    answer = client.chat(
        session, [user("hello"), replay, {"role": "tool", "tool_call_id": "c1", "content": "1 match"}]
    )
    assert answer.status == 200
    assert len(tree(client, session)["leaves"]) == leaves
    served = [*fed(engine, 0), 10, 102, 11, 2]
    if matcher == "strict":
        assert answer.headers["x-tito-cause"] == "tool_arguments_spelling"
    else:
        assert fed(engine, 1)[: len(served)] == served


@pytest.mark.parametrize(
    ("stored", "replayed", "same"),
    [
        ('{"x":1}', '{"x":true}', False), ('{"x":1}', '{"x":1.0}', True), ('{"x":1}', '{"x":"1"}', False),
        ('{"x":1}', '{ "x" : 1 }', True), ('{"x":1}', '{"x":1,"x":1}', False),
        ('{"x":1}', '{"x":NaN}', False),
        ('{"x":1}', "[1]", False), ('{"x":1}', "not json", False),
        ('{"id":9007199254740993}', '{"id":9007199254740992}', False),
        ('{"id":9007199254740993}', '{"id": 9007199254740993}', True),
        ("[" * 5000 + "]" * 5000, " " + "[" * 5000 + "]" * 5000, False),
        ("[" * 5000 + "]" * 5000, "[" * 5000 + "]" * 5000, True),
    ],
)  # fmt: skip
def test_loose_is_not_sloppy(toy, stored: str, replayed: str, same: bool) -> None:
    """CASE-04."""
    client, engine = toy
    session = client.create(message_matcher="loose_tool_call")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": stored}}
    engine.script(
        Reply([10, 11, 2], message=says("", tool_calls=[call])), Reply([102, 2], message=says("ok"))
    )
    client.chat(session, [user("hello")])
    again = {**call, "function": {"name": "f", "arguments": replayed}}
    answer = client.chat(session, [user("hello"), says("", tool_calls=[again]), user("ok")])
    assert answer.status == 200
    assert len(tree(client, session)["leaves"]) == (1 if same else 2)


def test_a_template_that_drops_earlier_reasoning_keeps_the_served_reasoning(tmp_path: Path) -> None:
    """CASE-05."""
    with toy_server(tmp_path, "toy-chatml-strip-think") as (client, engine):
        session = client.create()
        first = says("ab", reasoning_content="ok")
        engine.script(
            Reply([8, 102, 9, 1097, 1098, 2], message=first), Reply([8, 9, 102, 2], message=says("ok"))
        )
        client.chat(session, [user("hello")])
        answer = client.chat(session, [user("hello"), first, user("ab")])
        assert answer.status == 200
        assert fed(engine, 1) == [
            1, 5, 3, 101, 2, 3, 1, 6, 3, 8, 102, 9, 1097, 1098, 2, 3, 1, 5, 3, 100, 2, 3, 1, 6, 3,
        ]  # fmt: skip
        assert len(tree(client, session)["leaves"]) == 1


def test_the_newline_after_the_close_token_is_not_lost(toy) -> None:
    """CASE-06."""
    client, engine = toy
    session = client.create()
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    engine.script(
        Reply([10, 102, 11, 2], message=says("", tool_calls=[call]), finish="tool_calls"),
        Reply([102, 2], message=says("ok")),
    )
    first = reply_of(client.chat(session, [user("hello")]))
    client.chat(session, [user("hello"), first, {"role": "tool", "tool_call_id": "c1", "content": "ab"}])
    assert fed(engine, 1) == [
        1, 5, 3, 101, 2, 3, 1, 6, 3, 10, 102, 11, 2, 3, 1, 7, 3, 100, 2, 3, 1, 6, 3,
    ]  # fmt: skip


def test_two_splits_of_one_text_are_fed_as_sampled(toy) -> None:
    """CASE-07."""
    client, engine = toy
    session = client.create()
    engine.script(
        Reply([1097, 1098, 2], logprobs=[-0.5, -0.25, -0.125], message=says("ab")),
        Reply([102, 2], logprobs=[-1.0, -0.5], message=says("ok")),
    )
    client.chat(session, [user("hello")])
    client.chat(session, [user("hello"), says("ab"), user("ok")])
    expected = [1, 5, 3, 101, 2, 3, 1, 6, 3, 1097, 1098, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
    assert fed(engine, 1) == expected
    assert client.tokens(session) == [*expected, 102, 2]
    assert client.get(session)["metadata"]["tito_session_mismatch"] == []


def test_a_stream_never_costs_token_ids(toy) -> None:
    """CASE-08."""
    client, engine = toy
    session = client.create()
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    engine.script(
        Reply([10, 102, 11, 2], message=says("", tool_calls=[call]), finish="tool_calls"),
        Reply([102, 2], message=says("", tool_calls=[call]), finish="tool_calls", completion_tokens=4),
    )
    streamed = client.chat(session, [user("hello")], stream=True, stream_options={"include_usage": True})
    events = streamed.body.decode().split("\n\n")
    assert events[1:] == ["data: [DONE]", ""]
    chunk = json.loads(events[0].removeprefix("data: "))
    assert chunk["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert chunk["choices"][0]["finish_reason"] == "tool_calls"
    assert chunk["usage"]["completion_tokens"] == 4
    refused = client.chat(session, [user("ok")], stream=True)
    assert (refused.status, refused.code) == (502, "upstream_token_count_mismatch")
    assert all("stream" not in body for body in engine.bodies)
    assert len(tree(client, session)["nodes"]) == 1


def test_malformed_tool_json_is_stored_replayed_and_extended(toy) -> None:
    """CASE-09, on backend sglang."""
    client, engine = toy
    session = client.create()
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": '}}
    engine.script(
        Reply([10, 102, 2], message=says("", tool_calls=[call]), finish="tool_calls"),
        Reply([102, 2], message=says("ok")),
        "null_content",
    )
    first = reply_of(client.chat(session, [user("hello")]))
    assert first["tool_calls"][0]["function"]["arguments"] == '{"path": '
    history = [user("hello"), first, {"role": "tool", "tool_call_id": "c1", "content": "error: bad json"}]
    assert client.chat(session, history).status == 200
    assert len(tree(client, session)["leaves"]) == 1
    refused = client.chat(session, [user("ok")])
    assert (refused.status, refused.code) == (502, "upstream_null_content")


def test_a_sub_agent_does_not_disturb_its_parent(toy) -> None:
    """CASE-11."""
    client, engine = toy
    session = client.create()
    parent = [{"role": "system", "content": "parent"}, user("hello")]
    child = [{"role": "system", "content": "child"}, user("do x")]
    engine.script(
        Reply([1097, 1098, 2], message=says("ab")),
        Reply([1115, 2], message=says("sub1")),
        Reply([1116, 2], message=says("sub2")),
        Reply([102, 2], message=says("ok")),
    )
    client.chat(session, parent)
    client.chat(session, child)
    client.chat(session, [*child, says("sub1"), user("more")])
    client.chat(session, [*parent, says("ab"), user("result")])
    shape = tree(client, session)
    assert [node["parent"] for node in shape["nodes"]] == [None, None, 1, 0]
    assert len(shape["leaves"]) == 2
    for later, earlier, sampled in ((2, 1, [1115, 2]), (3, 0, [1097, 1098, 2])):
        served = [*fed(engine, earlier), *sampled]
        assert fed(engine, later)[: len(served)] == served


def test_a_cut_turn_is_not_extended_unless_told_how(toy) -> None:
    """CASE-14."""
    client, engine = toy
    for rule, statuses in (("refuse", [200, 409, 200]), ("close", [200, 200, 200])):
        session = client.create(on_truncated=rule)
        engine.script(Reply([1097, 1098], message=says("ab"), finish="length"))
        answers: list[Answer] = [client.chat(session, [user("hello")], max_tokens=2)]
        before = client.call("GET", f"/sessions/{session}").body
        engine.script(*[Reply([102, 2], message=says("ok"))] * (3 - statuses.count(409) - 1))
        answers.append(client.chat(session, [user("hello"), says("ab"), user("go on")]))
        if rule == "refuse":
            assert answers[1].code == "truncated_generation"
            assert client.call("GET", f"/sessions/{session}").body == before
        else:
            assert fed(engine, -1)[9:13] == [1097, 1098, 2, 3]
        answers.append(client.chat(session, [user("hello")]))
        assert [answer.status for answer in answers] == statuses


def test_the_same_body_again_is_sampled_or_replayed_as_the_session_says(toy) -> None:
    """CASE-15."""
    client, engine = toy
    resample = client.create(retry_policy="resample")
    engine.script(Reply([1097, 1098, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    client.chat(resample, [user("hello")])
    again = client.chat(resample, [user("hello")])
    assert again.headers["x-tito-cause"] == "retry"
    assert len(tree(client, resample)["nodes"]) == 2
    assert len(engine.requests) == 2

    replay = client.create(retry_policy="replay")
    engine.script(Reply([1097, 1098, 2], message=says("ab")))
    first = client.chat(replay, [user("hello")])
    second = client.chat(replay, [user("hello")])
    assert second.json == first.json
    assert second.headers["x-tito-replayed"] == "true"
    assert len(tree(client, replay)["nodes"]) == 1
    assert len(engine.requests) == 3
