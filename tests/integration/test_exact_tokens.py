"""The ids fed in a turn begin with the prompt and the completion of the turn it continues, as served."""

import json
import random

from sessions_app.api import runtime
from sessions_app.models import Message, Node, Record, TokenCheckpoint
from sessions_app.packing import unpack_ids
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_bad_input import toy  # noqa: F401  (fixture)
from tests.integration.test_cases import fed, says

WORDS = ["ab", "ok", "hello", "abab", "x", "ok ab", "hello hello"]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def split(rng: random.Random, text: str) -> list[int]:
    """A random legal split: named tokens may come as single characters."""
    named = {"ab": 100, "hello": 101, "ok": 102}
    ids: list[int] = []
    while text:
        word = next((name for name in named if text.startswith(name)), None)
        if word is not None and rng.random() < 0.5:
            ids.append(named[word])
        else:
            word = text[0]
            ids.append(1000 + ord(word))
        text = text[len(word) :]
    return ids


def reply(rng: random.Random) -> Reply:
    text = rng.choice(WORDS)
    finish = [2] if rng.random() < 0.8 else []
    if rng.random() < 0.3:
        call = {"id": f"c{rng.random()}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return Reply(
            [*split(rng, text), 10, 11, *finish], message=says(text, tool_calls=[call]), finish="tool_calls"
        )
    return Reply([*split(rng, text), *finish], message=says(text))


def next_messages(rng: random.Random, last: dict) -> list[dict]:
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": rng.choice(WORDS)}
        for call in last.get("tool_calls") or []
    ]
    return results or [user(rng.choice(WORDS))]


def test_thirty_random_conversations_are_fed_what_was_served(toy: tuple[Client, FakeEngine]) -> None:  # noqa: F811
    client, engine = toy
    rng = random.Random(20)
    for _ in range(30):
        session = client.create()
        messages: list[dict] = [{"role": "system", "content": "ab"}, user(rng.choice(WORDS))]
        served: list[int] = []
        for _ in range(rng.randint(2, 7)):
            scripted = reply(rng)
            engine.script(scripted)
            last = reply_of(client.chat(session, messages, tools=[TOOL]))
            prompt = fed(engine, -1)
            assert prompt[: len(served)] == served
            served = [*prompt, *scripted.ids]
            messages = [*messages, last, *next_messages(rng, last)]
        assert client.tokens(session) == served
        nodes = list(Node.objects.filter(session_id=session).order_by("seq"))
        assert {node.attach_kind for node in nodes[1:]} == {"append"}


def test_only_deltas_are_stored(toy: tuple[Client, FakeEngine]) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    messages = [user("hello")]
    for _ in range(4):
        engine.script(Reply([100, 2], message=says("ab")))
        messages = [*messages, reply_of(client.chat(session, messages)), user("ok")]
    rows = list(TokenCheckpoint.objects.filter(session_id=session).order_by("node_seq"))
    assert [len(unpack_ids(row.prompt_delta)) for row in rows] == [9, 10, 10, 10]
    assert [row.glue_tokens for row in rows] == [0, 1, 1, 1]
    records = Record.objects.filter(session_id=session).order_by("pk")
    assert [record.state for record in records] == ["confirmed"] * 3 + ["committed"]
    assert all(record.raw_tail is None and record.raw_leading is None for record in records)
    assert "hello" not in records[3].request_params


def test_a_respelled_history_comes_back_as_sent(toy: tuple[Client, FakeEngine]) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(*[Reply([100, 2], message=says("ab"))] * 3)
    first = [user("hello")]
    client.chat(session, first)
    second = [*first, {"content": "ab", "role": "assistant", "refusal": None}, user("ok")]
    client.chat(session, second)
    third = [{"content": "hello", "role": "user"}, *second[1:], says("ab"), user("x")]
    client.chat(session, third)
    records = client.get(session)["records"]
    assert [record["request"]["messages"] for record in records] == [first, second, third]
    assert list(records[2]["request"]["messages"][0]) == ["content", "role"]


def test_numbers_escapes_and_key_order_survive_storage(toy: tuple[Client, FakeEngine]) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")))
    body = (
        b'{"messages": [{"role": "user", "content": "h\\u00e9llo", "meta": {"b": 1.0, '
        b'"a": 12345678901234567890123, "e": 1e5, "nul": "\\u0000"}}], "temperature": 0.10000000000000001}'
    )
    answer = client.call("POST", f"/sessions/{session}/v1/chat/completions", body)
    assert answer.status == 200
    stored = Message.objects.get(session_id=session, position=0).body
    assert stored.encode() in body
    assert b"12345678901234567890123" in engine.requests[-1].raw


def test_an_append_costs_a_constant_number_of_statements(toy: tuple[Client, FakeEngine]) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    messages = [user("hello")]
    counts = []
    db = runtime.current().db
    for _ in range(12):
        engine.script(Reply([100, 2], message=says("ab")))
        before = db.statements
        messages = [*messages, reply_of(client.chat(session, messages)), user("ok")]
        counts.append(db.statements - before)
    assert max(counts) <= 4
    assert set(counts[1:]) == {3}


def test_of_a_history_respelled_every_turn_only_what_differs_is_stored(
    toy: tuple[Client, FakeEngine],  # noqa: F811
) -> None:
    client, engine = toy
    session = client.create(message_matcher="role_content_only")
    sent, messages = [], [user("hello")]
    for turn in range(5):
        engine.script(Reply([100, 2], message=says("ab")))
        request = [{**messages[0], "checksum": str(turn)}, *messages[1:]]
        client.chat(session, request)
        sent.append(request)
        messages = [*messages, says("ab"), user("ok")]
    stored = [record.raw_leading for record in Record.objects.filter(session_id=session).order_by("pk")]
    assert stored == [None, *(f'{{"0":{json.dumps(one[0], separators=(",", ":"))}}}' for one in sent[1:])]
    assert [record["request"]["messages"] for record in client.get(session)["records"]] == sent
