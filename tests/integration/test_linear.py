"""Policy `linear`: the healer's counters and its three answers to a history that does not go on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sessions_app.models import HistoryEvent, Node, Session, TokenCheckpoint
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.test_cases import says, toy_server, tree
from tests.integration.test_rollback import Talk, attach, held
from tests.integration.test_tree import OTHER, TOOL, parents, reordered

Pair = tuple[Client, FakeEngine]


@pytest.fixture(scope="module")
def pair(django_db_setup, django_db_blocker) -> Iterator[Pair]:
    settings = {"TITO_HISTORY_POLICY": "linear"}
    with django_db_blocker.unblock(), family_server("qwen3", **settings) as served:
        yield served


def healer(talk: Talk) -> tuple[int, int, int, int]:
    counters = talk.client.get(talk.session)["metadata"]["linear_healer"]
    assert list(counters) == ["healed_turns", "healed_prefix_tokens", "nonlinear", "close_unresolved"]
    return tuple(counters.values())


def test_counters_count_commits(pair: Pair) -> None:
    talk = Talk(pair)
    assert healer(talk) == (0, 0, 0, 0)
    talk.turn("one")
    assert healer(talk) == (0, 0, 0, 0)
    served = len(talk.tokens)
    talk.engine.script("500")
    talk.client.chat(talk.session, [*talk.history, user("two")])
    assert healer(talk) == (0, 0, 0, 0)
    assert attach(talk.turn("two")) == ("append", "0", None)
    assert healer(talk) == (1, served, 0, 0)


def test_the_spelling_of_clients_is_no_change(pair: Pair) -> None:
    talk = Talk(pair)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1,"b":[2]}'}}
    talk.engine.script(Reply([30, 31], message=says("", tool_calls=[call])))
    talk.client.chat(talk.session, [{"role": "developer", "content": "x"}, user("one")])
    served = talk.tokens
    respelled = {
        "id": "other", "type": "function", "index": 0,
        "function": {"name": "f", "arguments": '{ "b": [2], "a": 1 }'},
    }  # fmt: skip
    history = [
        {"role": "system", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": None, "tool_calls": [respelled]},
        {"role": "tool", "tool_call_id": "other", "content": "ok"},
    ]
    assert attach(talk.send(history)) == ("append", "0", None)
    assert talk.fed[: len(served)] == served


@pytest.mark.parametrize("respelled", ['{"a":1.0}', '{"a":true}', '{"a":"1"}', "{}"])
def test_types_are_kept_apart(pair: Pair, respelled: str) -> None:
    talk = Talk(pair)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    talk.engine.script(Reply([30, 31], message=says("", tool_calls=[call])))
    talk.client.chat(talk.session, [user("one")])
    other = {**call, "function": {"name": "f", "arguments": respelled}}
    answer = talk.send([user("one"), says("", tool_calls=[other]), user("two")])
    assert answer.headers["x-tito-attach"] == "reset"


def test_reset_starts_a_new_segment_and_counts_it(pair: Pair) -> None:
    talk = Talk(pair, on_nonlinear="reset")
    talk.turn("one")
    talk.turn("two")
    healed = healer(talk)
    assert attach(talk.send([user("else")], "x")) == ("reset", None, "unrelated_history")
    assert healer(talk) == (*healed[:2], 1, 0)
    assert attach(talk.send([user("else"), says("x"), user("more")])) == ("append", "2", None)
    assert healer(talk)[2] == 1
    assert parents(talk) == [None, 0, None, 2]
    assert attach(talk.send([*talk.history, user("three")]))[0] == "reset"  # the old segment is left for good
    session = Session.objects.get(pk=talk.session)
    assert (session.nonlinear, session.resets, session.forks) == (2, 2, 0)


def test_a_failed_odd_request_does_not_destroy_the_chain(pair: Pair) -> None:
    talk = Talk(pair, on_nonlinear="reset")
    talk.turn("one")
    before = talk.snapshot()
    talk.engine.script("500", "nan_logprob")
    for _ in range(2):
        assert talk.client.chat(talk.session, [user("else")]).status >= 500
        assert talk.snapshot() == before
    talk.refused([], 400, "invalid_messages")
    assert attach(talk.turn("two")) == ("append", "0", None)
    assert healer(talk)[2] == 0


def test_error_refuses_and_changes_nothing(pair: Pair) -> None:
    talk = Talk(pair, on_nonlinear="error")
    talk.turn("one")
    for messages, fields in (
        ([user("else")], {}),
        (talk.history[:1], {}),
        ([*talk.history, user("two")], {"tools": [TOOL]}),
    ):
        before, calls = talk.snapshot(), len(talk.engine.requests)
        answer = talk.send(messages, **fields)
        assert (answer.status, answer.code) == (409, "nonlinear_history")
        assert answer.json["error"]["message"] == (
            f"linear history mode: sid {talk.session!r} broke the append-only assumption "
            "(stored history is not a message-level prefix of the incoming history)"
        )
        assert (talk.snapshot(), len(talk.engine.requests)) == (before, calls)
    events = HistoryEvent.objects.filter(session_id=talk.session, kind="refused")
    assert list(events.values_list("cause", flat=True)) == ["unrelated_history", "retry", "tools_changed"]
    assert attach(talk.turn("two")) == ("append", "0", None)


def test_passthrough_ends_healing_and_every_fork_has_its_cause(tmp_path) -> None:
    with toy_server(tmp_path, TITO_HISTORY_POLICY="linear", TITO_ON_NONLINEAR="passthrough") as pair:
        talk = Talk(pair)
        talk.engine.script(Reply([100, 2], message=says("ab")))
        talk.client.chat(talk.session, [user("one")])
        talk.engine.script(Reply([100, 2], message=says("ab")))
        first = talk.client.chat(talk.session, [user("else")])
        assert attach(first) == ("passthrough", None, "unrelated_history")
        talk.engine.script(Reply([1097, 1098, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
        history = [user("else"), says("ab"), user("two")]
        second = talk.client.chat(talk.session, history)
        assert attach(second) == ("append", "1", None)  # ids that happen to go on
        third = talk.client.chat(talk.session, [*history, says("ab"), user("three")])
        assert attach(third) == ("fork", None, "engine_rerender")  # "ab" is one id when rendered anew
        talk.engine.script(Reply([102, 2], message=says("ok")))
        assert attach(talk.client.chat(talk.session, [*history[:2], user("two'")])) == (
            "fork", "1", "message_edited",
        )  # fmt: skip
        assert healer(talk) == (0, 0, 1, 0)
        kinds = Node.objects.filter(session_id=talk.session).values_list("attach_kind", "cause")
        assert all(cause for kind, cause in kinds if kind == "fork")


def test_tools_are_part_of_the_history_and_key_order_is_not(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one", tools=[TOOL, OTHER])
    assert attach(talk.turn("two", tools=[reordered(TOOL), reordered(OTHER)])) == ("append", "0", None)
    assert attach(talk.send([*talk.history, user("three")], tools=[OTHER, TOOL])) == (
        "reset", None, "tools_changed",
    )  # fmt: skip


def test_a_bare_regeneration_is_linear(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    assert attach(talk.send(talk.history)) == ("append", "0", None)
    assert attach(talk.send(talk.history)) == ("reset", None, "retry")


def test_roles_are_left_to_the_template(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    assert attach(talk.send([*talk.history, {"role": "narrator", "content": "x"}]))[0] == "append"


def test_a_cut_turn_is_closed_the_templates_way(pair: Pair) -> None:
    talk = Talk(pair)
    talk.engine.script(Reply([30], message=says("cut"), finish="length"))
    talk.client.chat(talk.session, [user("one")])
    served = talk.tokens
    assert attach(talk.send([user("one"), says("cut"), user("two")])) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    closer = TokenCheckpoint.objects.get(session_id=talk.session, node_seq=1).glue_tokens
    assert closer == 2  # the close token and the newline behind it
    assert healer(talk) == (1, len(served) + closer, 0, 0)


def test_without_healing_chains_split_where_ids_drift(tmp_path) -> None:
    with toy_server(tmp_path, TITO_HISTORY_POLICY="linear") as pair:
        talk = Talk(pair, healing=False)
        talk.engine.script(Reply([100, 2], message=says("ab")))
        talk.client.chat(talk.session, [user("one")])
        talk.engine.script(Reply([1097, 1098, 2], message=says("ab")))
        history = [user("one"), says("ab"), user("two")]
        assert attach(talk.client.chat(talk.session, history)) == ("append", "0", None)
        talk.engine.script(Reply([102, 2], message=says("ok")))
        history += [says("ab"), user("three")]
        answer = talk.client.chat(talk.session, history)
        assert attach(answer) == ("fork", None, "engine_rerender")
        assert talk.fed == pair[1].bodies[-1]["input_ids"]
        assert healer(talk) == (0, 0, 0, 0)


def test_of_two_extensions_in_flight_both_are_kept(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    with ThreadPoolExecutor(1) as pool:
        gate = held(talk.engine, "late")
        calls = len(talk.engine.requests)
        flying = pool.submit(talk.client.chat, talk.session, [*talk.history, user("a")])
        talk.engine.wait_seen(calls + 1)
        talk.turn("b")
        gate.set()
        assert attach(flying.result()) == ("fork", "0", "concurrent")
    assert tree(talk.client, talk.session)["leaves"][0]["path_node_ids"] == [0, 1]
    assert attach(talk.send([user("one"), says("re one"), user("a"), says("late"), user("c")])) == (
        "append", "2", None,
    )  # fmt: skip
