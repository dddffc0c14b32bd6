"""Claude Code and Codex before and after they compact a conversation, as 2.1.197 and 0.171.0 were seen to do
it (prompts cut).

Claude Code, by `/compact` and by itself alike: the summary is asked for at the end of the history, without
the last reply; then a conversation begins anew, with the summary in its first message and the last messages
kept behind it. The checksum in the system prompt follows the first message. Codex: the summary is asked for
without tools; then what the user said is kept, and the summary stands behind it.
"""

from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Reply

CONTEXT = """<system-reminder>
As you answer the user's questions, you can use the following context:
# currentDate
Today's date is 2026-11-30.
</system-reminder>
"""
AGENTS = (
    "<system-reminder>\nAvailable agent types for the Agent tool:\n- claude: Catch-all\n</system-reminder>\n"
)
ASK_SUMMARY = (
    "Your task is to create a detailed summary of the conversation so far. REMINDER: Do NOT call any tools."
)
TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]
SEALED = {"type": "thinking", "thinking": "Let me look.", "signature": "sig"}
GO_ON = "Continue the conversation from where it left off without asking the user any further questions."


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def resumed(summary: str) -> dict[str, Any]:
    said = (
        "This session is being continued from a previous conversation that ran out of context. The summary "
        f"below covers the earlier portion of the conversation.\n\nSummary:\n{summary}\n\n{GO_ON}"
    )
    return {"role": "user", "content": [text(CONTEXT), text(said)]}


class ClaudeCode:
    """One session of it. Every reply calls the tool, except for summaries."""

    def __init__(self, served: tuple[httpx.Client, FakeEngine], prompt: str = "You are an agent.") -> None:
        self.client, self.engine = served
        self.session = self.client.post("/sessions", json={"harness": "auto"}).json()["session_id"]
        self.prompt, self.calls = prompt, 0
        self.messages: list[Any] = [{"role": "user", "content": [text(AGENTS), text(CONTEXT), text("list")]}]

    def ask(self, reply: dict[str, Any], messages: list[Any], checksum: str) -> httpx.Response:
        finish = "tool_calls" if "tool_calls" in reply else "stop"
        self.engine.script(Reply(ids=[104, 105], message=reply, finish=finish))
        billing = f"x-anthropic-billing-header: cc_version=2.1.197.{checksum}; cc_entrypoint=sdk-cli;"
        body = {
            "model": "claude-sonnet-4-5", "max_tokens": 32000, "messages": messages, "tools": TOOLS,
            "system": [text(billing), text(self.prompt)], "thinking": {"type": "enabled", "budget_tokens": 9},
        }  # fmt: skip
        headers = {"user-agent": "claude-cli/2.1.197 (external, sdk-cli)", "x-claude-code-session-id": "s"}
        path = f"/sessions/{self.session}/v1/messages?beta=true"
        response = self.client.post(path, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response

    def work(self, checksum: str) -> httpx.Response:
        """A turn that calls the tool, and the tool's result."""
        self.calls += 1
        function = {"name": "Bash", "arguments": '{"command":  "ls"}'}
        reply = {
            "role": "assistant", "content": "I look.", "reasoning_content": "Let me look.",
            "tool_calls": [{"id": f"call_{self.calls}", "type": "function", "function": function}],
        }  # fmt: skip
        response = self.ask(reply, self.messages, checksum)
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{self.calls}",
            "content": f"a{self.calls}.txt",
        }
        self.messages += [
            {"role": "assistant", "content": response.json()["content"]},
            {"role": "user", "content": [result]},
        ]
        return response

    def compact(self, summary: str, checksum: str, kept: int) -> None:
        """Ask for a summary without the last call, and begin anew with the last messages kept."""
        reply = {
            "role": "assistant",
            "content": f"<analysis>\n</analysis>\n\n<summary>\n{summary}\n</summary>",
        }
        asked = {"role": "user", "content": [text(ASK_SUMMARY)]}
        self.ask(reply, [*self.messages[:-2], asked], checksum)
        self.messages = [resumed(summary), *self.messages[len(self.messages) - kept :]]
        if kept:
            *before, last = self.messages
            self.messages = [*before, {"role": "user", "content": [*last["content"], text(AGENTS)]}]

    def nodes(self) -> list[dict[str, Any]]:
        return list(self.client.get(f"/api/sessions/{self.session}/nodes").json()["nodes"])

    def events(self, cause: str) -> list[dict[str, Any]]:
        told = self.client.get(f"/api/sessions/{self.session}/events").json()["events"]
        return [event for event in told if event["cause"] == cause]


@pytest.mark.parametrize("kept", [0, 2])
def test_compactions_are_roots_linked_to_what_they_summarise(
    served: tuple[httpx.Client, FakeEngine], kept: int
) -> None:
    harness = ClaudeCode(served)
    for _ in range(3):
        harness.work("aaa")
    for number, checksum in enumerate(("bbb", "ccc")):
        harness.compact(f"Files were listed, part {number}.", "aaa", kept)
        harness.work(checksum)
        harness.work(checksum)
    told = [
        (node["attach_kind"], node["parent_seq"], node["cause"], node["root_class"])
        for node in harness.nodes()
    ]
    assert told == [
        ("root", None, "first_turn", "main"),
        ("append", 0, None, None),
        ("append", 1, None, None),
        ("fork", 1, "message_removed", None),  # asks for the summary
        ("fork", None, "compaction", "main"),
        ("append", 4, None, None),
        ("fork", 4, "message_removed", None),
        ("fork", None, "compaction", "main"),
        ("append", 7, None, None),
    ]
    compactions = harness.events("compaction")
    assert [event["compared_seq"] for event in compactions] == [0, 4]
    assert [event["detail"] for event in compactions] == [
        "the system prompt of root 0, going on from a summary",
        "the system prompt of root 4, going on from a summary",
    ]


def test_a_compaction_under_a_new_system_prompt_says_so_itself(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    harness = ClaudeCode(served, "You are an agent. Branch: main")
    harness.work("aaa")
    harness.work("aaa")
    harness.compact("All is listed.", "aaa", 0)
    harness.prompt = "You are an agent. Branch: other"
    harness.work("bbb")
    [compaction] = harness.events("compaction")
    assert (compaction["compared_seq"], harness.nodes()[-1]["root_class"]) == (0, "main")
    assert "it says that it goes on from a summary" in compaction["detail"]


HANDOFF = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Use the information in this summary to assist with your own analysis:\n"
)
CHECKPOINT = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM."
FUNCTIONS = [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}]


def item(role: str, said: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": said}]}


class Codex:
    """One session of it, with a reply of text for each turn."""

    def __init__(self, served: tuple[httpx.Client, FakeEngine]) -> None:
        self.client, self.engine = served
        self.session = self.client.post("/sessions", json={"harness": "auto"}).json()["session_id"]
        self.context = [item("developer", "<permissions>"), item("user", "<environment_context>")]
        self.items: list[Any] = [*self.context]
        self.users: list[Any] = []

    def ask(self, said: str, items: list[Any], tools: list[Any]) -> list[Any]:
        message = {"role": "assistant", "content": said, "reasoning_content": "hm"}
        self.engine.script(Reply(ids=[104, 105], message=message))
        body = {
            "model": "m", "instructions": "You are Codex.", "input": items, "tools": tools, "store": False,
            "include": ["reasoning.encrypted_content"],
        }  # fmt: skip
        headers = {"user-agent": "codex_exec/0.171.0", "originator": "codex_exec"}
        response = self.client.post(f"/sessions/{self.session}/v1/responses", json=body, headers=headers)
        assert response.status_code == 200, response.text
        return list(response.json()["output"])

    def work(self, said: str) -> None:
        self.users.append(item("user", said))
        self.items.append(self.users[-1])
        self.items += self.ask(f"did {said}", self.items, FUNCTIONS)

    def compact(self, summary: str) -> None:
        """What the user said goes before the context, and the summary behind it."""
        self.ask(summary, [*self.items, item("user", CHECKPOINT)], [])
        *first, last = self.users
        self.items = [*first, *self.context, last, item("user", HANDOFF + summary)]
        self.items += self.ask("went on", self.items, FUNCTIONS)


def test_codex_goes_on_from_its_summaries(served: tuple[httpx.Client, FakeEngine]) -> None:
    harness = Codex(served)
    for said in ("find", "find again"):
        harness.work(said)
    for number in range(2):
        harness.compact(f"Part {number}.")
        harness.work(f"more {number}")
    told = harness.client.get(f"/api/sessions/{harness.session}/nodes").json()["nodes"]
    assert [(node["parent_seq"], node["cause"], node["root_class"]) for node in told] == [
        (None, "first_turn", "main"),
        (0, None, None),
        (None, "tools_changed", "side"),
        (None, "compaction", "main"),
        (3, None, None),
        (None, "tools_changed", "side"),
        (None, "compaction", "main"),
        (6, None, None),
    ]
    events = harness.client.get(f"/api/sessions/{harness.session}/events").json()["events"]
    compactions = [event["compared_seq"] for event in events if event["cause"] == "compaction"]
    assert compactions == [0, 3]


def test_an_edited_compaction_is_no_second_one(served: tuple[httpx.Client, FakeEngine]) -> None:
    harness = Codex(served)
    harness.work("find")
    harness.compact("All is done.")
    harness.items = [*harness.items[:-1], {**harness.items[-1], "content": "went elsewhere"}]
    harness.context[1]["content"][0]["text"] = "<environment_context> at noon"
    harness.work("more")
    last = harness.client.get(f"/api/sessions/{harness.session}/nodes").json()["nodes"][-1]
    assert (last["cause"], last["root_class"]) == ("message_edited", "main")


def test_opencode_goes_on_from_summaries_that_stand_as_replies(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    client, engine = served
    session = client.post("/sessions", json={"harness": "opencode"}).json()["session_id"]
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]

    def ask(*said: str, **more: Any) -> None:
        roles = ("user", "assistant")
        told = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
        engine.script(Reply(ids=[104], text="ok"))
        body = {"messages": [{"role": "system", "content": "You are opencode."}, *told], **more}
        assert client.post(f"/sessions/{session}/v1/chat/completions", json=body).status_code == 200

    ask("list", tools=tools)
    for summary in ("Files were listed.", "More was done."):
        ask("What did we do so far?", summary, "Continue if you have next steps.", tools=tools)
        ask("What did we do so far?", summary, "Continue if you have next steps.", "ok", "more", tools=tools)
    told = client.get(f"/api/sessions/{session}/nodes").json()["nodes"]
    assert [(node["parent_seq"], node["cause"], node["root_class"]) for node in told] == [
        (None, "first_turn", "main"),
        (None, "compaction", "main"),
        (1, None, None),
        (None, "compaction", "main"),
        (3, None, None),
    ]
    events = client.get(f"/api/sessions/{session}/events").json()["events"]
    assert [event["compared_seq"] for event in events if event["cause"] == "compaction"] == [0, 1]


def test_qwen_code_goes_on_from_its_snapshots(served: tuple[httpx.Client, FakeEngine]) -> None:
    client, engine = served
    session = client.post("/sessions", json={"harness": "qwen-code"}).json()["session_id"]
    tools = [{"type": "function", "function": {"name": "edit", "parameters": {"type": "object"}}}]
    summing = "You are the component that summarizes internal chat history into a given structure."
    snapshot = "<state_snapshot>\n<overall_goal>list</overall_goal>\n</state_snapshot>"

    def ask(system: str, *said: str, **more: Any) -> None:
        told = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
        engine.script(Reply(ids=[104], text="ok"))
        body = {"messages": [{"role": "system", "content": system}, *told], **more}
        assert client.post(f"/sessions/{session}/v1/chat/completions", json=body).status_code == 200

    ask("You are Qwen Code.", "list", tools=tools)
    ask(summing, "list", "ok", "First, reason in your scratchpad. Then, generate the <state_snapshot>.")
    ask("You are Qwen Code.", snapshot, "Got it.", "more", tools=tools)
    ask("You are Qwen Code.", snapshot, "Got it.", "more", "ok", "still more", tools=tools)
    told = client.get(f"/api/sessions/{session}/nodes").json()["nodes"]
    assert [(node["parent_seq"], node["cause"], node["root_class"]) for node in told] == [
        (None, "first_turn", "main"),
        (None, "system_changed", "side"),
        (None, "compaction", "main"),
        (2, None, None),
    ]
