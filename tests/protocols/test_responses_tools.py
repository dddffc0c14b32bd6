"""Tools of the Responses API: namespaces are offered function by function, and told as they were sent."""

import json
from typing import Any

import pytest

from sessions_app.errors import InvalidTools
from sessions_app.protocols.responses import RESPONSES
from sessions_app.protocols.responses.replying import response_of
from sessions_app.protocols.responses.tools import joined_name, kept_beside, names_of, read_tools, told_tools
from sessions_app.turns.values import ChatRequest
from tests.protocols.incoming import incoming, result

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
LOOK = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False}
FIND = {"type": "function", "name": "_find", "parameters": SCHEMA, "strict": True, "defer_loading": True}
RAW = {"type": "custom", "name": "patch", "format": {"type": "grammar"}}
MAIL = {"type": "namespace", "name": "mcp__mail", "description": "A server.", "tools": [LOOK, RAW, FIND]}
OLD = {"type": "namespace", "name": "mcp__old__", "description": "", "tools": [LOOK]}
TOOLS = [{"type": "web_search"}, MAIL, {**LOOK, "name": "ls"}, OLD]
NAMES = ["mcp__mail__look", "mcp__mail___find", "ls", "mcp__old__look"]


def read(tools: Any, given: Any = "q", **more: Any) -> ChatRequest:
    return RESPONSES.read(incoming({"input": given, "tools": tools, **more}))


def test_functions_of_namespaces_are_offered_under_both_names() -> None:
    offered = read(TOOLS).tools or []
    assert [tool["function"]["name"] for tool in offered] == NAMES
    assert offered[0]["function"]["parameters"] == SCHEMA
    assert "strict" in offered[1]["function"]
    assert "strict" not in offered[0]["function"]


def test_what_is_offered_and_what_is_kept_say_what_was_sent() -> None:
    sent = [{"description": "", "strict": False, **tool} for tool in (LOOK, FIND)]
    tools = [{"type": "web_search"}, {**MAIL, "tools": [sent[0], RAW, sent[1]]}, sent[0]]
    kept = kept_beside(tools)
    assert "parameters" not in kept[1]["tools"][0]  # nothing is stored twice
    assert told_tools(read_tools({"tools": tools}) or [], kept) == tools
    assert (read(tools).own_params or {})["tools"] == kept


def test_a_namespace_that_was_kept_whole_is_told_whole() -> None:
    assert told_tools([], [MAIL]) == [MAIL]


def call(name: str) -> dict[str, Any]:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_calls_are_told_with_their_namespace_and_come_back() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call(name) for name in (*NAMES, "odd")]}
    request = read(TOOLS)
    output = response_of(result(message), json.loads(request.arrival.body))["output"]
    told = [(item.get("namespace"), item["name"]) for item in output]
    mail = [("mcp__mail", "look"), ("mcp__mail", "_find")]
    assert told == [*mail, (None, "ls"), ("mcp__old__", "look"), (None, "odd")]
    again = read(TOOLS, [{"role": "user", "content": "q"}, *output])
    assert again.messages[1] == message
    events = b"".join(RESPONSES.events(result(message), request)).decode()
    assert events.count('"namespace":"mcp__mail"') == 2 * 3  # added, done, and in the whole response


def test_a_choice_may_name_a_function_of_a_namespace() -> None:
    chosen = read(TOOLS, tool_choice={"type": "function", "name": "look", "namespace": "mcp__mail"})
    assert chosen.body["tool_choice"]["function"]["name"] == "mcp__mail__look"
    assert read(TOOLS, tool_choice={"type": "function", "namespace": "mcp__mail"}).tools


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([{"type": "namespace", "tools": []}], r"tools\[0\].name must be text"),
        ([{"type": "namespace", "name": "a"}], r"tools\[0\].tools must be a list"),
        ([{"type": "namespace", "name": "a", "tools": ["b"]}], r"tools\[0\].tools must be a list"),
        ([{**MAIL, "tools": [{"type": "function"}]}], r"tools\[0\].tools\[0\].name must be text"),
        ([{**LOOK, "name": "mcp__mail__look"}, MAIL], "two tools have the name 'mcp__mail__look'"),
        ([MAIL, {**MAIL, "name": "mcp__mail__"}], "two tools have the name 'mcp__mail__look'"),
        ([MAIL, MAIL], "two tools have the name"),
    ],
)
def test_what_could_not_be_told_apart_is_refused(tools: Any, words: str) -> None:
    with pytest.raises(InvalidTools, match=words):
        read(tools)


def test_names_are_joined_once() -> None:
    assert joined_name(None, "a") == joined_name("", "a") == "a"
    assert joined_name("n", "a") == joined_name("n__", "a") == "n__a"
    assert names_of(None) == names_of([{"type": "web_search"}]) == {}
