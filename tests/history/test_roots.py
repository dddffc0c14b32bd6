"""What a new root is taken for, rule by rule."""

from typing import Any

import pytest

from sessions_app.history.causes import Cause
from sessions_app.history.roots import EarlierRoot, agent_of, label_root

TOOLS = {"tools": [{"type": "function"}]}
MAIN = EarlierRoot(0, "main", "You are Parent.")


def said(system: str, user: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def test_the_first_conversation_is_the_agents_own() -> None:
    label = label_root(said("You are Parent.", "do x"), {}, {}, [])
    assert (label.root_class, label.agent, label.cause) == ("main", "Parent", None)


def test_another_system_prompt_is_a_subagent() -> None:
    label = label_root(said("You are Child.", "do y"), TOOLS, {}, [MAIN])
    assert (label.root_class, label.cause) == ("subagent", Cause.SUBAGENT)
    assert "root 0" in label.evidence


def test_a_header_names_a_subagent_and_its_agent() -> None:
    label = label_root(said("You are Parent.", "do y"), TOOLS, {"x-openai-subagent": "review"}, [MAIN])
    assert (label.root_class, label.agent) == ("subagent", "review")


@pytest.mark.parametrize(
    ("system", "root_class"),
    [
        ("You are now acting as the managed memory extraction subagent for an assistant.", "subagent"),
        ("You are a sub-agent.", "subagent"),
        ("You are Parent. You may start a subagent.", "main"),
    ],
)
def test_a_system_prompt_may_call_itself_a_subagent(system: str, root_class: str) -> None:
    label = label_root(said(system, "do y"), TOOLS, {}, [EarlierRoot(0, "main", system)])
    assert label.root_class == root_class


def test_the_same_system_prompt_is_the_agent_again() -> None:
    label = label_root(said("You are Parent.", "another task"), TOOLS, {}, [MAIN])
    assert (label.root_class, label.cause) == ("main", None)


@pytest.mark.parametrize(
    "opening",
    [
        "This session is being continued from a previous conversation that ran out of context.",
        "<summary>all so far</summary> go on",
        "<state_snapshot><overall_goal>x</overall_goal></state_snapshot>",
    ],
)
def test_a_summary_continues_the_root_it_stands_for(opening: str) -> None:
    other = EarlierRoot(3, "subagent", "You are Child.")
    label = label_root(said("You are Parent.", opening), TOOLS, {}, [MAIN, other])
    assert (label.root_class, label.cause, label.continues) == ("main", Cause.COMPACTION, 0)


BILLING = "x-anthropic-billing-header: cc_version=2.1.{}; cc_entrypoint=cli;\n{}"
RESUMED = "This session is being continued from a previous conversation that ran out of context."


def test_a_checksum_makes_no_other_system_prompt() -> None:
    earlier = EarlierRoot(0, "main", BILLING.format("aaa", "You are Parent."))
    label = label_root(said(BILLING.format("bbb", "You are Parent."), RESUMED), TOOLS, {}, [earlier])
    assert (label.root_class, label.cause, label.continues) == ("main", Cause.COMPACTION, 0)


def test_a_summary_stands_behind_reminders_of_any_length() -> None:
    opening = f"<system-reminder>{'context ' * 1000}</system-reminder>\n{RESUMED}"
    assert label_root(said("You are Parent.", opening), TOOLS, {}, [MAIN]).cause is Cause.COMPACTION


def test_a_summary_may_stand_as_a_reply() -> None:
    opening = [*said("You are Parent.", "What did we do so far?"), {"role": "assistant", "content": "This."}]
    label = label_root([*opening, {"role": "user", "content": "Continue."}], TOOLS, {}, [MAIN])
    assert (label.root_class, label.cause, label.continues) == ("main", Cause.COMPACTION, 0)
    asked = said("You are Parent.", "What did we do so far?")
    assert label_root(asked, TOOLS, {}, [MAIN]).cause is None


def test_a_subagents_summary_continues_the_subagent() -> None:
    child = EarlierRoot(3, "subagent", "You are Child.")
    label = label_root(said("You are Child.", RESUMED), TOOLS, {}, [MAIN, child])
    assert (label.root_class, label.cause, label.continues) == ("subagent", Cause.COMPACTION, 3)


def test_under_a_new_system_prompt_only_plain_words_tell_a_compaction() -> None:
    label = label_root(said("You are Parent. It is noon.", RESUMED), TOOLS, {}, [MAIN])
    assert (label.root_class, label.cause, label.continues) == ("main", Cause.COMPACTION, 0)
    hinted = label_root(said("You are Child.", "<summary>x</summary> check it"), TOOLS, {}, [MAIN])
    assert (hinted.root_class, hinted.cause) == ("subagent", Cause.SUBAGENT)


def test_a_held_conversation_that_is_asked_for_its_summary_without_tools_is_a_side_call() -> None:
    held = [*said("You are Parent.", "do x"), {"role": "assistant", "content": "did"}]
    asks = {"role": "user", "content": "Create a handoff summary for another LLM."}
    assert label_root([*held, asks], {}, {}, [MAIN]).root_class == "side"
    assert label_root([*held, asks], TOOLS, {}, [MAIN]).root_class == "main"
    assert label_root([*held[:-1], asks], {}, {}, [MAIN]).root_class == "main"


@pytest.mark.parametrize(
    ("messages", "parameters"),
    [
        (said("You are a title generator. You output ONLY a thread title.", "hi"), {}),
        (said("Analyze this. Extract a 2-3 word title.", "hi"), {}),
        (said("", "Generate a title for this conversation: hi"), {}),
        (said("Summarize this conversation.", "hi"), {}),
        (said("You are the component that summarizes internal chat history into a structure.", "hi"), {}),
        (
            said(
                "You are a context summarization agent. Your goal is to produce a structured summary.", "hi"
            ),
            {},
        ),
        ([{"role": "user", "content": "quota"}], {"max_tokens": 1}),
        ([{"role": "user", "content": [{"type": "text", "text": "quota"}]}], {"max_tokens": 1}),
    ],
)
@pytest.mark.parametrize("earlier", [[], [MAIN]])
def test_side_calls(messages: list[Any], parameters: dict[str, Any], earlier: list[EarlierRoot]) -> None:
    label = label_root(messages, parameters, {}, earlier)
    assert (label.root_class, label.cause) == ("side", Cause.SIDE_CALL)


@pytest.mark.parametrize(
    ("messages", "parameters"),
    [
        (said("You are Parent.", "Write a title for my book"), TOOLS),
        (said("You are Parent.", "hello"), {"max_tokens": 16}),
        ([{"role": "user", "content": "hello"}], {"max_tokens": 2}),
    ],
)
def test_an_agents_own_turns_are_no_side_calls(messages: list[Any], parameters: dict[str, Any]) -> None:
    assert label_root(messages, parameters, {}, []).root_class == "main"


def test_after_a_side_call_the_next_conversation_is_the_first_one() -> None:
    side = EarlierRoot(0, "side", "You are a title generator.")
    assert label_root(said("You are Parent.", "do x"), TOOLS, {}, [side]).root_class == "main"


def test_agents_names() -> None:
    assert agent_of("You are Claude Code, Anthropic's CLI.", {}) == "Claude Code"
    assert agent_of("You are a helpful assistant.", {}) is None
    assert agent_of("You are X.", {"x-tito-agent": "planner"}) == "planner"
