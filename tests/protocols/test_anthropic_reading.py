"""Anthropic requests as canonical ones, and what goes along as sidecars."""

import json
from typing import Any

import pytest

from sessions_app.errors import (
    BadRequest,
    InvalidMessages,
    InvalidSampling,
    InvalidTools,
    NNotSupported,
    UnsupportedContent,
)
from sessions_app.protocols.anthropic import ANTHROPIC
from tests.protocols.incoming import incoming


def read(messages: list[Any], *, policy: str = "tree", **more: Any) -> list[dict[str, Any]]:
    return ANTHROPIC.read(incoming({"messages": messages, **more}, policy=policy)).messages


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def test_a_text_and_a_single_block_are_the_same_message() -> None:
    assert read([{"role": "user", "content": "q"}]) == read([user("q")]) == [{"role": "user", "content": "q"}]


def test_a_users_blocks_stay_one_message() -> None:
    assert read([user("a", "", "b")]) == [{"role": "user", "content": "a\nb"}]


@pytest.mark.parametrize("more", [{"policy": "linear"}])
def test_under_the_gateways_policy_each_block_is_a_message(more: dict[str, Any]) -> None:
    assert read([user("a", "b")], **more) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_tool_results_become_tool_messages_in_order() -> None:
    content = [
        {"type": "text", "text": "first"},
        {"type": "tool_result", "tool_use_id": "toolu_A", "content": "r1", "is_error": True},
        {"type": "tool_result", "tool_use_id": "own", "content": [{"type": "text", "text": "r2"}]},
        {"type": "tool_result", "tool_use_id": "toolu_C"},
        {"type": "text", "text": "last"},
    ]
    assert read([{"role": "user", "content": content}]) == [
        {"role": "user", "content": "first"},
        {"role": "tool", "tool_call_id": "call_A", "content": "r1"},
        {"role": "tool", "tool_call_id": "own", "content": "r2"},
        {"role": "tool", "tool_call_id": "call_C", "content": ""},
        {"role": "user", "content": "last"},
    ]


def test_a_reply_is_one_assistant_message() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "redacted_thinking", "data": "zz"},
        {"type": "text", "text": "a "},
        {"type": "text", "text": "b"},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"b": 1.0, "a": "é"}},
        {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
    ]
    [_, reply] = read([user("q"), {"role": "assistant", "content": content}])
    assert reply == {
        "role": "assistant",
        "content": "a b",
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "ls", "arguments": '{"b": 1.0, "a": "é"}'},
            },
            {"id": "call_2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        ],
    }


def test_arguments_keep_every_digit_and_key() -> None:
    spelled = '{"x":0.12345678901234567890, "n":123456789012345678901,"e":1e2 ,"z":-0,"u":"\\u00e9","e":1.50}'
    plain = '{"role":"assistant","content":[{"type":"tool_use","id":"t0","name":"ls","input":{"a":1.5}}]}'
    call = '{"type":"tool_use", "input":' + spelled + ',"id":"t1","name":"ls"}'
    reply = '{"role":"assistant","content":[{"type":"text","text":"x"},' + call + "]}"
    first, second = ANTHROPIC.read(incoming('{"messages":[' + plain + "," + reply + "]}")).messages
    assert first["tool_calls"][0]["function"]["arguments"] == '{"a": 1.5}'
    assert second["tool_calls"][0]["function"]["arguments"] == (
        '{"x": 0.12345678901234567890, "n": 123456789012345678901, "e": 1e2, "z": -0, "u": "é", "e": 1.50}'
    )


def test_the_system_prompt_beside_is_spelled_as_sent() -> None:
    system = '[ {"type":"text","text":"s","odd":0.12345678901234567890} ]'
    sidecars = ANTHROPIC.read(incoming(f'{{"messages":[],"system":{system}}}')).sidecars
    assert sidecars[0] == f'[{{"system":{system}}}]'


@pytest.mark.parametrize("system", ["s", [{"type": "text", "text": "s", "cache_control": {"type": "e"}}]])
def test_the_system_prompt_comes_first(system: Any) -> None:
    assert read([user("q")], system=system)[0] == {"role": "system", "content": "s"}


def reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>\n"


SYSTEM = {"role": "system", "content": "note"}
REPLY = {"role": "assistant", "content": "a"}


def test_a_system_message_joins_the_user_before_it() -> None:
    assert read([user("q"), SYSTEM]) == [{"role": "user", "content": f"q\n{reminder('note')}"}]
    linear = read([user("q"), SYSTEM], policy="linear")
    assert [message["content"] for message in linear] == ["q", reminder("note")]


def test_a_system_message_never_changes_what_was_answered_already() -> None:
    before = read([user("q"), REPLY])
    assert read([user("q"), REPLY, SYSTEM, user("r")]) == [
        *before,
        {"role": "user", "content": f"{reminder('note')}\nr"},
    ]
    assert read([user("q"), REPLY, SYSTEM]) == [*before, {"role": "user", "content": reminder("note")}]
    assert read([user("q"), REPLY, SYSTEM, REPLY])[2] == {"role": "user", "content": reminder("note")}


def test_the_gateways_fold_reaches_back_over_replies() -> None:
    contents = [message["content"] for message in read([user("q"), REPLY, SYSTEM], policy="linear")]
    assert contents == ["q", reminder("note"), "a"]


def test_a_system_message_without_a_user_becomes_one() -> None:
    assert read([REPLY, SYSTEM], policy="linear")[1] == {"role": "user", "content": reminder("note")}
    assert read([REPLY, SYSTEM, REPLY, user("q")], policy="linear")[-2:] == [
        {"role": "user", "content": reminder("note")},
        {"role": "user", "content": "q"},
    ]


def test_the_clients_own_messages_are_kept_beside() -> None:
    marked = '{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"e"}}]}'
    result = '{"role": "user", "content": [{"type":"tool_result","tool_use_id":"t","is_error":true}]}'
    plain = '{"role":"user","content":"b"}'
    body = f'{{"system":[{{"type":"text","text":"s"}}],"messages":[{marked},{plain},{result}]}}'
    sidecars = ANTHROPIC.read(incoming(body)).sidecars
    assert sidecars[0] == '[{"system":[{"type":"text","text":"s"}]}]'
    assert sidecars[1] == f"[{marked}]"
    assert sidecars.get(2) is None
    assert json.loads(sidecars[3]) == [json.loads(result)]
    assert sorted(sidecars) == [0, 1, 3]


def test_everything_else_is_kept_in_the_clients_words() -> None:
    tool = {"name": "ls", "input_schema": {"type": "object"}, "cache_control": {"type": "e"}}
    message = {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "e"}}]}
    body = {"messages": [message], "tools": [tool], "thinking": {"type": "enabled"}, "max_tokens": 5}
    assert ANTHROPIC.read(incoming(body)).own_params == {
        "thinking": {"type": "enabled"},
        "max_tokens": 5,
        "tools": [{"cache_control": {"type": "e"}}],
        "cache_markers": [[0, 0, {"type": "e"}]],
    }


def test_sampling_and_tools_are_said_in_openais_words() -> None:
    body = {
        "model": "m",
        "max_tokens": 5,
        "temperature": 0.5,
        "stop_sequences": ["X"],
        "messages": [user("q")],
        "tools": [{"name": "ls", "input_schema": {"type": "object"}}, {"name": "now", "description": "d"}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "metadata": {"user_id": "u"},
    }
    request = ANTHROPIC.read(incoming(body))
    empty = {"type": "object", "properties": {}}
    assert request.tools == [
        {"type": "function", "function": {"name": "ls", "description": "", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "now", "description": "d", "parameters": empty}},
    ]
    sampling = {name: request.body[name] for name in ("model", "max_tokens", "temperature", "stop")}
    assert sampling == {"model": "m", "max_tokens": 5, "temperature": 0.5, "stop": ["X"]}
    assert (request.body["tool_choice"], request.body["parallel_tool_calls"]) == ("required", False)
    assert "metadata" not in request.body


def test_tools_that_the_service_runs_are_not_offered_and_kept_whole() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}
    shell = {"type": "bash_20250124", "name": "bash"}
    request = ANTHROPIC.read(incoming({"messages": [user("q")], "tools": [search, shell]}))
    assert [tool["function"]["name"] for tool in request.tools or ()] == ["bash"]
    assert request.own_params is not None
    assert request.own_params["tools"] == [search, {"type": "bash_20250124"}]
    alone = ANTHROPIC.read(incoming({"messages": [user("q")], "tools": [search], "tool_choice": {}}))
    assert alone.tools is None


def test_structured_output_is_asked_of_the_engine() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    body = {"messages": [user("q")], "output_config": {"format": {"type": "json_schema", "schema": schema}}}
    asked = ANTHROPIC.read(incoming(body)).body["response_format"]
    assert asked == {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}
    plain = {"messages": [user("q")], "output_config": {"effort": "high"}}
    assert "response_format" not in ANTHROPIC.read(incoming(plain)).body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ([], BadRequest),
        ({}, InvalidMessages),
        ({"messages": "x"}, InvalidMessages),
        ({"messages": ["x"]}, InvalidMessages),
        ({"messages": [{"role": "tool", "content": "x"}]}, InvalidMessages),
        ({"messages": [{"role": "user"}]}, InvalidMessages),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, InvalidMessages),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, InvalidMessages),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, UnsupportedContent),
        ({"messages": [{"role": "assistant", "content": [{"type": "server_tool_use"}]}]}, UnsupportedContent),
        ({"messages": [], "system": 5}, InvalidMessages),
        ({"messages": [], "tools": {}}, None),
        ({"messages": [], "output_config": {"format": {"type": "json_schema"}}}, BadRequest),
        ({"messages": [], "output_config": 3}, None),
        ({"messages": [], "tools": [{"input_schema": {}}]}, InvalidTools),
        ({"messages": [], "n": 2}, NNotSupported),
        ({"messages": [], "max_tokens": 0}, InvalidSampling),
        ({"messages": [], "max_tokens": "5"}, InvalidSampling),
        ({"messages": [], "max_tokens": True}, InvalidSampling),
        ({"messages": [], "temperature": "hot"}, InvalidSampling),
        ({"messages": [], "temperature": None, "max_tokens": None}, None),
        ({"messages": [], "stop_sequences": "x"}, BadRequest),
        ({"messages": [], "tools": [{"name": "a"}], "tool_choice": {"type": "odd"}}, InvalidTools),
    ],
)
def test_what_is_no_request_is_refused(body: Any, kind: type[Exception] | None) -> None:
    if kind is None:
        ANTHROPIC.read(incoming(body))
        return
    with pytest.raises(kind):
        ANTHROPIC.read(incoming(body))


@pytest.mark.parametrize("policy", ["tree", "linear"])
def test_system_messages_without_end_are_folded_in_one_pass(policy: str) -> None:
    system = {"role": "system", "content": "s"}
    messages = [{"role": "user", "content": "q"}, *[system] * 40_000]
    read = ANTHROPIC.read(incoming({"messages": messages}, policy=policy)).messages
    told = [read[0]["content"]] if policy == "tree" else [message["content"] for message in read]
    assert sum(text.count("<system-reminder>") for text in told) == 40_000
