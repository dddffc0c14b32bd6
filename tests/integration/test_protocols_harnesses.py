"""What real clients send back: recorded requests, answered by a scripted engine."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Reply

VECTORS = Path(__file__).parent.parent / "vectors" / "harness-wire"


class Played:
    """A recording, played into a session."""

    def __init__(self, served: tuple[httpx.Client, FakeEngine], name: str, **options: Any) -> None:
        self.client, self.engine = served
        self.session = self.client.post("/sessions", json=options).json()["session_id"]
        self.first = len(self.engine.bodies)
        self.responses = []
        for request in json.loads((VECTORS / f"{name}.json").read_text())["requests"]:
            self.engine.script(scripted(request["reply"]))
            headers = {key: value for key, value in request["headers"].items() if key != "Accept-Encoding"}
            path = f"/sessions/{self.session}{request['path']}"
            response = self.client.post(path, json=request["body"], headers=headers)
            assert response.status_code == 200, response.text
            self.responses.append(response)

    @property
    def leaves(self) -> list[list[int]]:
        """The path of each leaf."""
        nodes = self.client.get(f"/api/sessions/{self.session}/nodes").json()["nodes"]
        parents = {node["seq"]: node["parent_seq"] for node in nodes}
        inner = set(parents.values())
        return [path_to(seq, parents) for seq in parents if seq not in inner]

    @property
    def fed(self) -> list[list[int]]:
        """The ids fed in each turn."""
        return [body["input_ids"] for body in self.engine.bodies[self.first :]]

    def events(self) -> list[dict[str, Any]]:
        return self.client.get(f"/api/sessions/{self.session}/events").json()["events"]


def path_to(seq: int | None, parents: dict[int, int | None]) -> list[int]:
    """Nodes from the root to one."""
    return [] if seq is None else [*path_to(parents[seq], parents), seq]


def scripted(reply: dict[str, Any]) -> Reply:
    """What the engine answered in the recording; its ids spell nothing in particular."""
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in reply["tool_calls"]
    ]
    message = {"role": "assistant", "content": reply["text"] or "", "reasoning_content": reply["reasoning"]}
    if calls:
        message["tool_calls"] = calls
    return Reply(ids=[104, 105, 106], message=message, finish="tool_calls" if calls else "stop")


@pytest.mark.parametrize("options", [{}, {"harness": "auto"}])
def test_the_openai_sdk_is_one_chain(
    served: tuple[httpx.Client, FakeEngine], options: dict[str, Any]
) -> None:
    played = Played(served, "openai-sdk", **options)
    assert played.leaves == [[0, 1, 2, 3]]
    assert [event for event in played.events() if event["kind"] == "rewrite"] == []


def test_dropped_reasoning_forks_under_strict(served: tuple[httpx.Client, FakeEngine]) -> None:
    played = Played(served, "openai-agents")
    assert len(played.leaves) == len(played.responses)
    causes = [response.headers.get("X-Tito-Cause") for response in played.responses]
    assert causes[1:] == ["reasoning_dropped"] * (len(causes) - 1)


@pytest.mark.parametrize(
    "options",
    [
        {"harness": "openai-agents"},
        {"harness": "auto"},
        {"harness": "openai-agents", "history_policy": "linear"},
        {"harness": "openai-agents", "history_policy": "rollback"},
        {"harness": "openai-sdk"},
    ],
)
def test_a_profile_that_tolerates_dropped_reasoning_keeps_one_chain(
    served: tuple[httpx.Client, FakeEngine], options: dict[str, Any]
) -> None:
    played = Played(served, "openai-agents", **options)
    assert len(played.leaves) == 1
    for before, after in zip(played.fed, played.fed[1:], strict=False):
        assert after[: len(before) + 3] == [*before, 104, 105, 106]
    rewrites = [event for event in played.events() if event["kind"] == "rewrite"]
    profile = options["harness"].replace("auto", "openai-agents")
    assert {event["detail"] for event in rewrites} == {f"{profile}/dropped-reasoning"}
    assert [event["message_index"] for event in rewrites] == [2, 4, 7]


@pytest.mark.parametrize(
    "options", [{"history_policy": "linear"}, {"harness": "anthropic"}, {"harness": "auto"}]
)
def test_the_anthropic_sdk_is_one_chain(
    served: tuple[httpx.Client, FakeEngine], options: dict[str, Any]
) -> None:
    played = Played(served, "anthropic-sdk", **options)
    assert len(played.leaves) == 1


def test_a_dropped_reply_forks_from_an_earlier_node(served: tuple[httpx.Client, FakeEngine]) -> None:
    played = Played(served, "mini-swe-agent")
    parents = [response.headers.get("X-Tito-Parent") for response in played.responses]
    assert parents == [None, "0", "1", "1"]


def test_a_harness_is_detected_as_a_label_only(served: tuple[httpx.Client, FakeEngine]) -> None:
    played = Played(served, "openai-agents")
    assert len(played.leaves) > 1
    from sessions_app.models import Session

    session = Session.objects.get(id=played.session)
    assert (session.harness, session.detected_harness) == (None, "openai-agents")


def coder(checksum: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """A request of a coding agent that puts a checksum into its system prompt (acceptance case 10)."""
    billing = f"x-anthropic-billing-header: cc_version=9.9.9; cch={checksum};"
    system = [{"type": "text", "text": text} for text in (billing, "You are a coder.")]
    return {"system": system, "messages": list(messages), "max_tokens": 16}


HELLO = {"role": "user", "content": "hello"}
OK = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
MORE = {"role": "user", "content": "ab"}


def two_turns(served: tuple[httpx.Client, FakeEngine], **options: Any) -> tuple[str, list[httpx.Response]]:
    client, engine = served
    session = client.post("/sessions", json=options).json()["session_id"]
    engine.script(Reply(ids=[104], text="ok"), Reply(ids=[105], text="ok"))
    bodies = [coder("aaa111", HELLO), coder("bbb222", HELLO, OK, MORE)]
    return session, [client.post(f"/sessions/{session}/v1/messages", json=body) for body in bodies]


def events_of(served: tuple[httpx.Client, FakeEngine], session: str) -> list[dict[str, Any]]:
    return served[0].get(f"/api/sessions/{session}/events").json()["events"]


def test_a_changing_checksum_is_tolerated_by_name(served: tuple[httpx.Client, FakeEngine]) -> None:
    session, responses = two_turns(served, harness="claude-code")
    assert responses[1].headers["X-Tito-Attach"] == "append"
    [rewrite] = [event for event in events_of(served, session) if event["kind"] == "rewrite"]
    assert rewrite["cause"] == "harness_rewrite"
    assert (rewrite["detail"], rewrite["message_index"]) == ("claude-code/billing-header", 0)
    fed = served[1].bodies[-1]["input_ids"]
    assert fed[: len(served[1].bodies[-2]["input_ids"])] == served[1].bodies[-2]["input_ids"]


def test_without_a_profile_the_checksum_forks(served: tuple[httpx.Client, FakeEngine]) -> None:
    session, responses = two_turns(served)
    assert responses[1].headers["X-Tito-Cause"] == "system_changed"
    [fork] = [event for event in events_of(served, session) if event["kind"] == "fork"]
    assert (fork["message_index"], fork["field"]) == (0, "content")
    assert fork["char_offset"] == len("x-anthropic-billing-header: cc_version=9.9.9; cch=")


def test_moving_cache_markers_never_change_a_match(served: tuple[httpx.Client, FakeEngine]) -> None:
    client, engine = served
    session = client.post("/sessions").json()["session_id"]
    engine.script(Reply(ids=[104], text="ok"), Reply(ids=[105], text="ok"))
    marked = {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "e"}}]}
    tool = {"name": "ls", "input_schema": {"type": "object"}}
    bodies = [
        {"system": "Help.", "messages": [marked], "tools": [tool]},
        {
            "system": [{"type": "text", "text": "Help.", "cache_control": {"type": "e"}}],
            "messages": [HELLO, OK, MORE],
            "tools": [tool | {"cache_control": {"type": "e"}}],
        },
    ]
    responses = [client.post(f"/sessions/{session}/v1/messages", json=body) for body in bodies]
    assert [response.headers["X-Tito-Attach"] for response in responses] == ["root", "append"]


def test_roots_are_classed_with_evidence(served: tuple[httpx.Client, FakeEngine]) -> None:
    client, engine = served
    session = client.post("/sessions").json()["session_id"]

    def ask(system: str, *texts: str, **more: Any) -> httpx.Response:
        engine.script(Reply(ids=[104], text="ab"))
        said = [
            {"role": role, "content": text}
            for role, text in zip(("user", "assistant", "user"), texts, strict=False)
        ]
        messages = [{"role": "system", "content": system}, *said]
        body = {"messages": messages, **more}
        return client.post(f"/sessions/{session}/v1/chat/completions", json=body)

    tools = [{"type": "function", "function": {"name": "ls", "description": "", "parameters": {}}}]
    responses = [
        ask("You are a title generator.", "Generate a title for: do x"),
        ask("You are Parent Agent, careful.", "do x", tools=tools),
        ask("You are Child.", "look into y", tools=tools),
        ask("You are Parent Agent, careful.", "do x", "ab", "result", tools=tools),
        ask("You are Parent Agent, careful.", "<summary>so far</summary> go on", tools=tools),
    ]
    causes = [response.headers.get("X-Tito-Cause") for response in responses]
    assert causes == ["first_turn", "unrelated_history", "subagent", None, "compaction"]
    from sessions_app.models import Node

    nodes = list(Node.objects.filter(session_id=session).order_by("seq"))
    assert [node.root_class for node in nodes] == ["side", "main", "subagent", None, "main"]
    assert [node.agent for node in nodes][1:3] == ["Parent Agent", "Child"]
    assert "root 1" in nodes[2].root_evidence
    compaction = [event for event in events_of(served, session) if event["cause"] == "compaction"]
    assert [event["compared_seq"] for event in compaction] == [1]
