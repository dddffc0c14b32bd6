"""The grammars `qwen3` and `think`: what is a call, what is reasoning, and what is text after all."""

import json
from typing import Any

import pytest

from sessions_app.rendering.parsers.qwen3 import Qwen3ToolParser
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.parsers.think import ThinkParser
from sessions_app.rendering.protocol import ParsedReply
from tests.rendering.support import bpe_tokenizer, healing_renderer

CALL = '<tool_call>\n{"name": "ls", "arguments": {"path": "/"}}\n</tool_call>'


def parse(text: str, *, opened: bool = False) -> ParsedReply:
    tokenizer = bpe_tokenizer()
    parser = ReplyParser(ThinkParser(), Qwen3ToolParser(), call_id=lambda: "call_x")
    return parser.parse(tokenizer.encode(text), None, frozenset({273}), tokenizer.decode, opened=opened)


def calls_of(parsed: ParsedReply) -> list[tuple[str, str]]:
    calls: list[dict[str, Any]] = parsed.message.get("tool_calls", [])
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


def test_text_ends_at_the_first_stop_token() -> None:
    assert parse("hi<|im_end|>\n<|im_start|>user").message == {"role": "assistant", "content": "hi"}


def test_nothing_said_is_an_empty_text() -> None:
    assert parse("<|im_end|>") == ParsedReply({"role": "assistant", "content": ""}, ill_formed=False)


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>\nw\n</think>\n\nhi", "w", "hi"),
        ("<think>w</think>hi", "w", "hi"),
        ("<think>\n\nw\n\n</think>hi", "\nw\n", "hi"),
        ("<think>\n \n</think>\n\nhi", None, "hi"),
        ("<think>\nnever closed", None, "<think>\nnever closed"),
        ("no opener</think>hi", None, "no opener</think>hi"),
        (" <think>w</think>hi", None, " <think>w</think>hi"),
    ],
)
def test_reasoning(text: str, reasoning: str | None, content: str) -> None:
    parsed = parse(text)
    assert not parsed.ill_formed
    assert parsed.message.get("reasoning_content") == reasoning
    assert parsed.message["content"] == content


def test_reasoning_that_the_prompt_opened() -> None:
    assert parse("w\n</think>\n\nhi", opened=True).message == {
        "role": "assistant", "content": "hi", "reasoning_content": "w",
    }  # fmt: skip


def test_a_call_has_an_id_a_name_and_arguments_as_text() -> None:
    assert parse(CALL).message["tool_calls"] == [
        {"id": "call_x", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/"}'}}
    ]


@pytest.mark.parametrize(
    ("text", "content", "count"),
    [
        (f"see\n{CALL}", "see", 1),
        (f"see\n\n{CALL}", "see\n", 1),
        (f"see {CALL}\n \n{CALL}\n", "see ", 2),
        (f"{CALL}{CALL}{CALL}", "", 3),
        (f"<think>\nw {CALL}\n</think>\n\n{CALL}", "", 1),
    ],
)
def test_text_before_calls_and_white_space_between_them(text: str, content: str, count: int) -> None:
    parsed = parse(text)
    assert not parsed.ill_formed
    assert parsed.message["content"] == content
    assert calls_of(parsed) == [("ls", '{"path": "/"}')] * count


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL} and text",
        f"{CALL} and {CALL}",
        "<tool_call>\n{bad\n</tool_call>",
        '<tool_call>{"name": "ls", "arguments": {}}',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": 1}</tool_call>',
        '<tool_call>{"name": "ls", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "ls", "arguments": "{}"}</tool_call>',
        "<tool_call>[1]</tool_call>",
        '<tool_call>{"name": "\\ud800"}</tool_call>',
        "<tool_call></tool_call>",
        "<tool_call>" + '{"a":' * 5000,
        '<tool_call>{"name": "f", "arguments": {"a": ' + "[" * 900 + "]" * 900 + "}}</tool_call>",
    ],
)
def test_a_malformed_turn_is_all_text_and_marked(text: str) -> None:
    parsed = parse(f"<think>\nw\n</think>\n\nsee\n{text}<|im_end|>")
    expected = {"role": "assistant", "content": f"<think>\nw\n</think>\n\nsee\n{text}"}
    assert parsed == ParsedReply(expected, ill_formed=True)


@pytest.mark.parametrize("body", ['{"name": "ls"}', '{"name": "ls", "arguments": null}'])
def test_missing_arguments_are_none_given(body: str) -> None:
    assert calls_of(parse(f"<tool_call>{body}</tool_call>")) == [("ls", "{}")]


def test_a_close_mark_inside_a_string_is_part_of_it() -> None:
    body = '{"name": "w", "arguments": {"t": "</tool_call>"}}'
    assert calls_of(parse(f"<tool_call>{body}</tool_call>")) == [("w", '{"t": "</tool_call>"}')]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('{"b": 1.10, "a": 1e5}', '{"a": 1e5, "b": 1.10}'),
        ('{"id": 12345678901234567890123}', '{"id": 12345678901234567890123}'),
        ('{"s": "\\u00e9\\ud800"}', '{"s": "\\u00e9\\ud800"}'),
        ('{"s": "\\u00e9"}', '{"s": "é"}'),
        ('{"a": [true, null, {"y": 1, "x": 2}]}', '{"a": [true, null, {"x": 2, "y": 1}]}'),
    ],
)
def test_arguments_are_sorted_and_their_numbers_untouched(sent: str, kept: str) -> None:
    arguments = calls_of(parse(f'<tool_call>{{"name": "f", "arguments": {sent}}}</tool_call>'))[0][1]
    assert arguments == kept
    assert json.loads(arguments) == json.loads(sent)


def test_call_ids_are_unique() -> None:
    parser = reply_parser("qwen3", "think", bpe_tokenizer())
    ids = {parser.call_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(call_id) == 29 and call_id.startswith("call_") for call_id in ids)


def test_a_turn_that_ends_with_any_stop_token_of_the_template_is_cut_there() -> None:
    ids = bpe_tokenizer().encode("x<|observation|>\n<tool_response>")
    assert healing_renderer("role_delim").parse(ids, None).message["content"] == "x"


def test_the_qwen3_grammar_ends_at_its_own_mark_whatever_the_template() -> None:
    renderer = healing_renderer("role_delim")
    ids = renderer.tokenizer.encode(f"see\n{CALL}<|im_end|>rest<|im_end|>")
    parsed = renderer.parse(ids, None)
    assert not parsed.ill_formed
    assert (parsed.message["content"], calls_of(parsed)) == ("see", [("ls", '{"path": "/"}')])


TOOLS: list[Any] = [
    {
        "function": {
            "name": "f",
            "parameters": {"properties": {"s": {"type": "string"}, "n": {"type": "integer"}}},
        }
    }
]
XML = "<tool_call>\n<function=f>\n{}</function>\n</tool_call>"
KIMI = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
KIMI_CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
MINIMAX = "<minimax:tool_call>\n{}</minimax:tool_call>"
GLM = "<tool_call>f\n{}</tool_call>"


def grammar(name: str, text: str) -> ParsedReply:
    tokenizer = bpe_tokenizer()
    parser = reply_parser(name, "think", tokenizer)
    return parser.parse(tokenizer.encode(text), TOOLS, frozenset({273}), tokenizer.decode)


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ("", {}),
        ("<parameter=p>\nv\n</parameter>\n", {"p": "v"}),
        ("<parameter=p>/a</parameter>\n", {"p": "/a"}),
        ("<parameter=s>\n12\n</parameter>\n<parameter=n>\n12\n</parameter>\n", {"s": "12", "n": 12}),
        ('<parameter=p>\n{"a": [1]}\n</parameter>\n', {"p": {"a": [1]}}),
        ("<parameter=p>\ntwo\nlines \n</parameter>\n", {"p": "two\nlines "}),
        ("<parameter=p>\nNaN\n</parameter>\n", {"p": "NaN"}),
    ],
)
def test_the_grammar_of_qwen35(inside: str, arguments: dict[str, Any]) -> None:
    parsed = grammar("qwen3.5", f"w\n</think>\n\na\n\n{XML.format(inside)}\n{XML.format(inside)}<|im_end|>")
    assert not parsed.ill_formed
    assert (parsed.message["reasoning_content"], parsed.message["content"]) == ("w", "a")
    assert [(name, json.loads(text)) for name, text in calls_of(parsed)] == [("f", arguments)] * 2


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ("", {}),
        ("<arg_key>p</arg_key>\n<arg_value>v</arg_value>\n", {"p": "v"}),
        (
            "<arg_key>s</arg_key><arg_value>1</arg_value><arg_key>n</arg_key><arg_value>1</arg_value>",
            {"s": "1", "n": 1},
        ),
    ],
)
def test_the_grammar_of_glm(inside: str, arguments: dict[str, Any]) -> None:
    parsed = grammar("glm", f"\n<think>w</think>\na\n{GLM.format(inside)}")
    assert not parsed.ill_formed
    assert (parsed.message["reasoning_content"], parsed.message["content"]) == ("w", "a")
    assert [(name, json.loads(text)) for name, text in calls_of(parsed)] == [("f", arguments)]


def test_the_grammar_of_kimi() -> None:
    """Results answer to the ids that the model gave."""
    calls = [KIMI_CALL.format(f"functions.{name}:{at}", "{}") for at, name in enumerate(("f", "a.b"))]
    parsed = grammar("kimi-k2", f"<think>w</think>a {KIMI.format(' '.join(calls))}<|im_end|>")
    assert not parsed.ill_formed
    assert (parsed.message["reasoning_content"], parsed.message["content"]) == ("w", "a ")
    assert calls_of(parsed) == [("f", "{}"), ("a.b", "{}")]
    assert [call["id"] for call in parsed.message["tool_calls"]] == ["functions.f:0", "functions.a.b:1"]


def test_the_grammar_of_deepseek31() -> None:
    call = "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
    calls = call.format("f", '{"n": 1.10}') + call.format("g", "{}")
    parsed = grammar("deepseek-v3.1", f"a<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜><|im_end|>")
    assert (parsed.ill_formed, parsed.message["content"]) == (False, "a")
    assert calls_of(parsed) == [("f", '{"n": 1.10}'), ("g", "{}")]


def test_a_mark_of_kimi_inside_a_string_is_part_of_it() -> None:
    call = KIMI_CALL.format("functions.f:0", '{"s": "<|tool_call_end|>"}')
    assert calls_of(grammar("kimi-k2", KIMI.format(call))) == [("f", '{"s": "<|tool_call_end|>"}')]


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ("", {}),
        ('<parameter name="s">12</parameter>\n<parameter name="n">12</parameter>\n', {"s": "12", "n": 12}),
        ('<parameter name="p">{"a": [1]}</parameter>', {"p": {"a": [1]}}),
        ('<parameter name="s">two\nlines </parameter>', {"s": "two\nlines "}),
    ],
)
def test_the_grammar_of_minimax(inside: str, arguments: dict[str, Any]) -> None:
    invoke = f'<invoke name="f">\n{inside}</invoke>\n'
    parsed = grammar("minimax-m2", f"<think>w</think>a\n{MINIMAX.format(invoke * 2)}<|im_end|>")
    assert not parsed.ill_formed
    assert (parsed.message["reasoning_content"], parsed.message["content"]) == ("w", "a")
    assert [(name, json.loads(text)) for name, text in calls_of(parsed)] == [("f", arguments)] * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deepseek-v3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁calls▁end｜>"),
        ("kimi-k2", KIMI.format("")),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("f", "{}"))),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("functions.f:0", "[1]"))),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("functions.f:0", "{bad"))),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("functions.f:0", "{} more"))),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("functions.f:0", "{}")) + " more"),
        ("kimi-k2", KIMI.format(KIMI_CALL.format("functions.f:0", "{}")) * 2),
        ("kimi-k2", "<|tool_calls_section_begin|>" + KIMI_CALL.format("functions.f:0", "{}")),
        ("minimax-m2", MINIMAX.format("")),
        ("minimax-m2", MINIMAX.format('<invoke name="f">stray</invoke>')),
        ("minimax-m2", MINIMAX.format('<invoke name="f"></invoke> more')),
        ("minimax-m2", MINIMAX.format('<invoke name="f">')),
        ("minimax-m2", MINIMAX.format('<invoke name="f"></invoke>') + " more"),
        ("qwen3.5", XML.format("stray")),
        ("qwen3.5", "<tool_call>f</tool_call>"),
        ("qwen3.5", XML.format("<parameter=p>\nv\n")),
        ("qwen3.5", XML.format("") + " more"),
        ("glm", "<tool_call></tool_call>"),
        ("glm", GLM.format("<arg_key>p</arg_key>")),
        ("glm", "<tool_call>f"),
    ],
)
def test_what_breaks_these_grammars_is_text(name: str, text: str) -> None:
    assert grammar(name, f"a{text}") == ParsedReply(
        {"role": "assistant", "content": f"a{text}"}, ill_formed=True
    )


def test_an_unknown_parser_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError,
        match=r"TITO_TOOL_PARSER='nope' is not one of: deepseek-v3, .* minimax-m2, none, qwen3, qwen3\.5",
    ):
        reply_parser("nope", "think", bpe_tokenizer())
