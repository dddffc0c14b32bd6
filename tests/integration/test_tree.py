"""Policy `tree`: the deepest whole match is extended, whatever was branched before; nothing else forks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessions_app.models import HistoryEvent, Node, Session
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.test_cases import says, tree
from tests.integration.test_rollback import SYSTEM, Talk, attach, held

Pair = tuple[Client, FakeEngine]


@pytest.fixture(scope="module")
def pair(django_db_setup, django_db_blocker) -> Iterator[Pair]:
    with django_db_blocker.unblock(), family_server("qwen35") as served:
        yield served


def parents(talk: Talk) -> list[int | None]:
    return [node["parent"] for node in tree(talk.client, talk.session)["nodes"]]


def leaves(talk: Talk) -> list[list[int]]:
    return [leaf["path_node_ids"] for leaf in tree(talk.client, talk.session)["leaves"]]


def tokens_at(talk: Talk, seq: int) -> list[int]:
    return talk.client.get(talk.session, f"?leaf={seq}")["metadata"]["accumulated_token_ids"]


def test_forks_on_three_levels_and_old_branches_resumed(pair: Pair) -> None:
    talk = Talk(pair)
    for text in ("one", "two", "three"):
        talk.turn(text)
    main = list(talk.history)
    fork_two = [*main[:2], user("two'")]
    assert attach(talk.send(fork_two, "re two'")) == ("fork", "0", "message_edited")
    fork_two += [says("re two'"), user("three'")]
    assert attach(talk.send(fork_two, "re three'")) == ("append", "3", None)
    fork_three = [*main[:4], user("three''")]
    assert attach(talk.send(fork_three, "x")) == ("fork", "1", "message_edited")
    assert attach(talk.send([user("one'")], "y")) == ("fork", None, "unrelated_history")
    for path, node in ((main, 2), ([*fork_two, says("re three'")], 4), ([*fork_three, says("x")], 5)):
        served = tokens_at(talk, node)
        answer = talk.send([*path, user("resumed")], "z")
        assert attach(answer) == ("append", str(node), None)
        assert talk.fed[: len(served)] == served
        assert talk.tokens == [*talk.fed, 30, 31]
    assert parents(talk) == [None, 0, 1, 0, 3, 1, None, 2, 4, 5]
    assert leaves(talk) == [[6], [0, 1, 2, 7], [0, 3, 4, 8], [0, 1, 5, 9]]
    assert Session.objects.get(pk=talk.session).forks == 3


def test_the_later_of_twins_is_extended(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    again = talk.send([user("one")], "re one")
    assert attach(again) == ("retry", None, "retry")
    assert attach(talk.send([*talk.history, user("two")])) == ("append", "1", None)
    notice = HistoryEvent.objects.get(session_id=talk.session, cause="twin")
    assert (notice.kind, notice.compared_seq, notice.node_seq) == ("notice", 0, 1)


def test_a_resend_of_a_whole_path_extends_its_last_node(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    served = talk.tokens
    assert attach(talk.send(talk.history, "more")) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    assert Node.objects.get(session_id=talk.session, seq=1).message_count == 3
    assert attach(talk.send(talk.history, "other")) == ("retry", "0", "retry")


def test_an_edited_reply_is_prompt_behind_the_node_before_it(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    served = tokens_at(talk, 0)
    answer = talk.send([*talk.history[:3], says("edited"), user("three")])
    assert attach(answer) == ("fork", "0", "assistant_edited")
    assert talk.fed[: len(served)] == served
    node = Node.objects.get(session_id=talk.session, seq=2)
    assert (node.message_start, node.message_count) == (2, 6)


def test_few_shot_replies_are_no_checkpoints(pair: Pair) -> None:
    talk = Talk(pair)
    shots = [user("q"), says("a"), user("q2")]
    talk.send(shots, "a2")
    assert attach(talk.send([*shots[:2], user("other")])) == ("fork", None, "message_edited")
    assert attach(talk.send([user("q")])) == ("fork", None, "history_shorter")


def test_a_cut_node_stands_in_the_way_only_as_the_best_match(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.engine.script(Reply([30], message=says("cut"), finish="length"))
    cut = [*talk.history, user("two"), says("cut")]
    reply_of(talk.client.chat(talk.session, cut[:3]))
    text = talk.refused([*cut, user("three")], 409, "truncated_generation")
    assert text == (
        "truncated generation cannot be extended: the matched node ended with finish_reason='length' and "
        "truncation closes that path for good; branch before the cut instead"
    )
    assert talk.refused(cut, 409, "truncated_generation") == text
    event = HistoryEvent.objects.filter(session_id=talk.session).latest("pk")
    assert (event.kind, event.cause) == ("refused", "truncated_parent")
    assert tree(talk.client, talk.session)["nodes"][1]["truncated"] is True
    assert attach(talk.send(cut[:3])) == ("retry", "0", "retry")
    assert attach(talk.send([*cut[:3], says("edited"), user("three")])) == ("fork", "0", "assistant_edited")


def test_a_role_that_cannot_be_appended_is_refused_before_the_tree_moves(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    text = "; the selected TITO fixed template does not support appending this role"
    for role in ("system", "developer", "narrator", None, "", 3, ["user"]):
        said = talk.refused([*talk.history[:2], {"role": role, "content": "x"}], 400, "role_not_appendable")
        assert said == (
            f"appended message role={role!r} not allowed (allowed=['assistant', 'tool', 'user']){text}"
        )
    assert attach(talk.send([SYSTEM, user("one")])) == ("fork", None, "system_changed")
    assert attach(talk.turn("three")) == ("append", "1", None)


def test_a_path_that_begins_without_a_role_goes_on(pair: Pair) -> None:
    for odd in ({"content": "x"}, {"role": ["user"], "content": "x"}):
        talk = Talk(pair)
        assert talk.send([odd]).status == 200
        assert attach(talk.send([odd, says("yes"), user("two")])) == ("append", "0", None)


def test_an_empty_history_is_refused_at_any_time(pair: Pair) -> None:
    talk = Talk(pair)
    talk.refused([], 400, "invalid_messages")
    talk.turn("one")
    talk.refused([], 400, "invalid_messages")
    assert attach(talk.turn("two")) == ("append", "0", None)


def test_get_follows_the_last_commit_and_no_request_in_flight(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    before = talk.snapshot()
    with ThreadPoolExecutor(1) as pool:
        gate = held(talk.engine, "late")
        calls = len(talk.engine.requests)
        flying = pool.submit(talk.client.chat, talk.session, [user("unrelated")])
        talk.engine.wait_seen(calls + 1)
        assert talk.snapshot() == before
        talk.turn("two")
        gate.set()
        assert attach(flying.result()) == ("fork", None, "unrelated_history")
    assert [node["id"] for node in tree(talk.client, talk.session)["nodes"]] == [0, 1, 2]
    assert len(talk.client.get(talk.session)["records"]) == 1
    assert len(talk.client.get(talk.session, "?leaf=1")["records"]) == 2


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
OTHER = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}


def reordered(tool: dict[str, Any]) -> dict[str, Any]:
    """The same schema with other key order."""
    return {
        name: reordered(value) if isinstance(value, dict) else value
        for name, value in reversed(list(tool.items()))
    }


def test_the_order_of_keys_in_a_tool_is_no_change_and_the_order_of_tools_is(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one", tools=[TOOL, OTHER])
    assert attach(talk.turn("two", tools=[reordered(TOOL), reordered(OTHER)])) == ("append", "0", None)
    changed = [*talk.history, user("three")]
    for tools in ([OTHER, TOOL], [TOOL], []):
        assert attach(talk.send(changed, tools=tools)) == ("fork", None, "tools_changed")
    assert attach(talk.send(changed)) == ("retry", None, "retry")  # no tools are as good as an empty list
    assert HistoryEvent.objects.filter(session_id=talk.session, kind="fork").count() == 3
    assert attach(talk.turn("three", tools=[TOOL, OTHER])) == ("append", "1", None)


def test_kwargs_that_change_only_the_suffix_are_a_notice(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    served = talk.tokens
    assert attach(talk.turn("two", chat_template_kwargs={"enable_thinking": False})) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    assert talk.engine.bodies[-1]["chat_template_kwargs"] == {
        "enable_thinking": False,
        "clear_thinking": False,
    }
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert (event.kind, event.cause) == ("notice", "template_kwargs_changed")


def test_model_and_adapter_are_notices(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one", model="a")
    assert attach(talk.turn("two", model="b", lora_path="x")) == ("append", "0", None)
    events = HistoryEvent.objects.filter(session_id=talk.session)
    assert sorted(events.values_list("cause", "stored_value", "replayed_value")) == [
        ("adapter_changed", None, '"x"'),
        ("model_changed", '"a"', '"b"'),
    ]


def test_a_node_limit_is_told_before_the_engine_is_asked(django_db_blocker) -> None:
    with family_server("qwen3", TITO_MAX_NODES="2") as pair:
        talk = Talk(pair)
        talk.turn("one")
        talk.turn("two")
        talk.refused([*talk.history, user("three")], 409, "node_limit")
        assert HistoryEvent.objects.get(session_id=talk.session).cause == "node_limit"


def test_turns_and_context_are_limited_per_session(pair: Pair) -> None:
    talk = Talk(pair, max_turns=1)
    talk.turn("one")
    assert talk.refused([*talk.history, user("two")], 429, "max_turns_exceeded")
    short = Talk(pair, max_context_tokens=40)
    short.turn("one", max_tokens=100)
    left = short.engine.bodies[-1]
    assert left["max_tokens"] == 40 - len(left["input_ids"])
    assert short.refused([*short.history, user("x " * 50)], 400, "context_length_exceeded")
