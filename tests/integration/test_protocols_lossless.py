"""Whatever a client of another protocol sent can be read back, replayed messages included."""

import json
from typing import Any

import httpx

from tests.fakes.engine import FakeEngine, Reply

ARGUMENTS = '{"days": 0.12345678901234567890, "id": 123456789012345678901}'
CALL = {"id": "call_A1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
THINKING = {"role": "assistant", "content": "see", "reasoning_content": "hm", "tool_calls": [CALL]}
SHORT_CALL = {**CALL, "function": {"name": "weather", "arguments": '{"days": 1}'}}
SHORT = {**THINKING, "tool_calls": [SHORT_CALL]}


def turn(
    served: tuple[httpx.Client, FakeEngine], session: str, path: str, body: Any, reply: Reply | None = None
) -> httpx.Response:
    client, engine = served
    engine.script(reply or Reply(ids=[104], text="ok"))
    content = body if isinstance(body, str) else json.dumps(body)
    headers = {"content-type": "application/json"}
    response = client.post(f"/sessions/{session}/v1/{path}", content=content, headers=headers)
    assert response.status_code == 200, response.text
    return response


def new_session(served: tuple[httpx.Client, FakeEngine], **options: Any) -> str:
    return served[0].post("/sessions", json=options).json()["session_id"]


def replayed(session: str) -> list[Any]:
    """Per record in order: what was replayed otherwise than it is stored."""
    from sessions_app.models import Record

    records = Record.objects.filter(session_id=session).order_by("id")
    return [json.loads(record.client_params or "{}").get("replayed") for record in records]


def told_again(response: httpx.Response) -> dict[str, Any]:
    return {"role": "assistant", "content": response.json()["content"]}


RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_A1", "content": "sunny", "is_error": True}],
}
QUESTION = {"role": "user", "content": [{"type": "text", "text": "weather?"}]}


def test_arguments_reach_the_client_and_the_engine_with_every_digit(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    session = new_session(served)
    body = {"messages": [QUESTION], "max_tokens": 9}
    first = turn(served, session, "messages", body, Reply(ids=[105], message=THINKING))
    assert f'"input":{ARGUMENTS}' in first.text
    copied = first.text[first.text.index('"content":') + 10 : first.text.index(',"stop_reason"')]
    messages = f'[{json.dumps(QUESTION)},{{"role":"assistant","content":{copied}}},{json.dumps(RESULT)}]'
    second = turn(served, session, "messages", f'{{"messages":{messages}}}')
    assert second.headers["X-Tito-Attach"] == "append"
    fresh = turn(served, new_session(served), "messages", f'{{"messages":{messages}}}')
    assert fresh.status_code == 200
    assert served[1].bodies[-1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS


def test_a_faithful_replay_costs_nothing(served: tuple[httpx.Client, FakeEngine]) -> None:
    session = new_session(served, history_policy="linear")
    first = turn(served, session, "messages", {"messages": [QUESTION]}, Reply(ids=[105], message=SHORT))
    messages = [QUESTION, told_again(first), RESULT]
    second = turn(served, session, "messages", {"messages": messages})
    messages += [told_again(second), QUESTION]
    third = turn(served, session, "messages", {"messages": messages})
    assert third.headers["X-Tito-Attach"] == "append"
    assert replayed(session) == [None, None, None]


def test_signatures_and_blocks_of_a_replay_are_kept(served: tuple[httpx.Client, FakeEngine]) -> None:
    session = new_session(served, history_policy="linear")
    first = turn(served, session, "messages", {"messages": [QUESTION]}, Reply(ids=[105], message=SHORT))
    reply = told_again(first)
    reply["content"][0]["signature"] = "another's"
    messages = [QUESTION, reply, RESULT]
    second = turn(served, session, "messages", {"messages": messages})
    moved = {
        "role": "user",
        "content": [{"type": "text", "text": "weather?", "cache_control": {"type": "e"}}],
    }
    messages = [moved, reply, RESULT, told_again(second), QUESTION]
    third = turn(served, session, "messages", {"messages": messages})
    odd = {"role": "user", "content": [{"type": "text", "text": "weather?", "citations": None}]}
    fourth = turn(
        served, session, "messages", {"messages": [odd, *messages[1:], told_again(third), QUESTION]}
    )
    assert fourth.headers["X-Tito-Attach"] == "append"
    assert replayed(session) == [None, {"1": [reply]}, None, {"0": [odd], "1": [reply]}]


def test_items_of_responses_are_kept_alike(served: tuple[httpx.Client, FakeEngine]) -> None:
    session = new_session(served)
    items: list[Any] = [{"role": "user", "content": "weather?"}]
    first = turn(served, session, "responses", {"input": items}, Reply(ids=[105], message=THINKING))
    output = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
    items = [*items, *first.json()["output"], *output]
    turn(served, session, "responses", {"input": items})
    respelled = [{**items[1], "note": 1}, *items[2:]]
    third = turn(served, session, "responses", {"input": [items[0], *respelled]})
    assert third.headers["X-Tito-Cause"] == "retry"
    assert replayed(session) == [None, None, {"1": respelled[:3]}]


def test_a_hop_keeps_what_its_protocol_adds(served: tuple[httpx.Client, FakeEngine]) -> None:
    session = new_session(served)
    plain = {"role": "user", "content": "weather?"}
    first = turn(served, session, "chat/completions", {"messages": [plain]})
    reply = {"role": "assistant", "content": first.json()["choices"][0]["message"]["content"]}
    second = turn(served, session, "messages", {"messages": [QUESTION, reply, plain]})
    assert second.headers["X-Tito-Attach"] == "append"
    assert replayed(session) == [None, {"0": [QUESTION]}]


def test_a_turn_that_came_to_nothing_keeps_what_was_sent(served: tuple[httpx.Client, FakeEngine]) -> None:
    client, engine = served
    session = new_session(served)
    turn(served, session, "messages", {"messages": [QUESTION]}, Reply(ids=[104], text="ok"))
    answered = [QUESTION, {"role": "assistant", "content": "ok"}]
    engine.script("500")
    body = {"messages": [*answered, RESULT], "metadata": {"user_id": "u"}}
    assert client.post(f"/sessions/{session}/v1/messages", json=body).status_code == 500
    from sessions_app.models import Message, Record

    good, bad = Record.objects.filter(session_id=session).order_by("id")
    assert json.loads(good.client_params or "") == {}
    assert json.loads(bad.client_params or "")["sidecars"] == {"2": [RESULT]}
    message = Message.objects.get(session_id=session, position=0)
    assert json.loads(message.sidecar or "") == [QUESTION]
