"""Policy `rollback`: which request extends, goes back or is refused, and what is left of the session then."""

import ast
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessions_app.models import HistoryEvent, Message, Record, Session
from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.test_cases import says

Pair = tuple[Client, FakeEngine]
SYSTEM = {"role": "system", "content": "be brief"}


@pytest.fixture(scope="module")
def pair(django_db_setup, django_db_blocker) -> Iterator[Pair]:
    """Family qwen35: no system message may be appended."""
    with django_db_blocker.unblock(), family_server("qwen35", TITO_HISTORY_POLICY="rollback") as served:
        yield served


class Talk:
    """One session and the history its client holds."""

    def __init__(self, pair: Pair, **options: Any) -> None:
        self.client, self.engine = pair
        self.session = self.client.create(**options)
        self.history: list[Any] = []

    def snapshot(self) -> bytes:
        return self.client.call("GET", f"/sessions/{self.session}").body

    def send(self, messages: list[Any], text: str = "yes", **fields: Any) -> Answer:
        self.engine.script(Reply([30, 31], message=says(text)))
        answer = self.client.chat(self.session, messages, **fields)
        if answer.status != 200 and self.engine._script:
            self.engine._script.pop()
        return answer

    def turn(self, text: str, **fields: Any) -> Answer:
        """A plain extension."""
        self.history.append(user(text))
        answer = self.send(self.history, f"re {text}", **fields)
        self.history.append(reply_of(answer))
        return answer

    @property
    def fed(self) -> list[int]:
        return self.engine.bodies[-1]["input_ids"]

    @property
    def tokens(self) -> list[int]:
        return self.client.tokens(self.session)

    @property
    def replies(self) -> list[str]:
        """What the active path's replies say."""
        records = self.client.get(self.session)["records"]
        return [record["response"]["choices"][0]["message"]["content"] for record in records]

    def refused(self, messages: Any, status: int, code: str, **fields: Any) -> str:
        """The text of a refusal that left no trace but its record."""
        before, calls = self.snapshot(), len(self.engine.requests)
        answer = self.send(messages, **fields)
        assert (answer.status, answer.code) == (status, code), answer.body
        assert self.snapshot() == before
        assert len(self.engine.requests) == calls
        record = Record.objects.filter(session_id=self.session).latest("pk")
        assert (record.state, record.error_code) == ("refused", code)
        return answer.json["error"]


def attach(answer: Answer) -> tuple[str, str | None, str | None]:
    names = ("attach", "parent", "cause")
    return tuple(answer.headers.get(f"x-tito-{name}") for name in names)  # type: ignore[return-value]


def test_a_first_turn_sent_again_goes_back_to_nothing(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    first = talk.fed
    again = talk.send([user("one")], "other")
    assert attach(again) == ("rollback", None, "retry")
    assert talk.fed == first
    assert len(talk.client.get(talk.session)["records"]) == 1
    assert attach(talk.send([user("one"), says("other"), user("two")])) == ("append", "1", None)


def test_the_last_turn_sent_again_keeps_the_turn_before_it(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    fed = talk.fed
    again = talk.send(talk.history[:3], "other")
    assert attach(again) == ("rollback", "0", "retry")
    assert talk.fed == fed
    assert talk.replies == ["re one", "other"]
    assert talk.tokens == [*fed, 30, 31]
    assert "tree" not in talk.client.get(talk.session)["metadata"]


def test_a_failed_retry_leaves_the_last_turn_and_it_goes_on(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    before = talk.snapshot()
    for fault in ("500", "nan_logprob", "null_content", "cut"):
        talk.engine.script(fault)
        assert talk.client.chat(talk.session, talk.history[:3]).status >= 500
        assert talk.snapshot() == before
    assert attach(talk.turn("three")) == ("append", "1", None)
    assert Session.objects.get(pk=talk.session).rollbacks == 0


def test_a_retry_with_a_role_that_cannot_be_appended_leaves_the_last_turn(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    text = talk.refused([*talk.history[:2], SYSTEM], 400, "role_not_appendable")
    found = re.fullmatch(
        r"appended message at index 2 has role='system', allowed=frozenset\((\{.*\})\); "
        "the selected TITO fixed template does not support appending this role",
        text,
    )
    assert found is not None, text
    assert ast.literal_eval(found[1]) == {"assistant", "tool", "user"}
    assert attach(talk.turn("three")) == ("append", "1", None)


def test_roles_of_a_first_turn_are_the_templates_business(pair: Pair) -> None:
    talk = Talk(pair)
    assert talk.send([SYSTEM, user("one"), SYSTEM, {"role": "narrator", "content": "x"}]).status == 200
    assert attach(talk.send([{"role": "narrator", "content": "x"}]))[0] == "rollback"


def test_a_message_without_a_role_begins_a_session_but_is_not_appended(pair: Pair) -> None:
    talk = Talk(pair)
    for odd in ({"content": "x"}, {"role": None, "content": "x"}, {"role": ["user"], "content": "x"}):
        assert talk.send([odd, user("one")]).status == 200
        history = [odd, user("one"), says("yes"), odd]
        text = talk.refused(history, 400, "role_not_appendable")
        assert text.startswith(f"appended message at index 3 has role={odd.get('role')!r}, allowed=")


def test_a_reply_with_an_odd_role_is_stored_and_replayed(pair: Pair) -> None:
    for role in (None, "", 3, ["assistant"], {"a": 1}):
        talk, reply = Talk(pair), {"role": role, "content": "odd"}
        talk.engine.script(Reply([30, 31], message=reply))
        assert reply_of(talk.client.chat(talk.session, [user("one")])) == reply
        assert attach(talk.send([user("one"), reply, user("two")])) == ("append", "0", None)


def test_only_one_generation_may_be_discarded(pair: Pair) -> None:
    talk = Talk(pair)
    for text in ("one", "two", "three"):
        talk.turn(text)
    text = "rollback failed: discard_count={} exceeds max_assistant_rollback_steps=1 (stored has 6 messages, "
    for messages, discarded in (
        (talk.history[:2], 2),
        ([user("else")], 3),
        ([], 3),
        ([user("one"), says("edited"), *talk.history[2:], user("four")], 3),
        ([*talk.history[:2], user("edited"), *talk.history[3:]], 2),
    ):
        said = talk.refused(messages, 400, "rollback_too_deep")
        assert said == text.format(discarded) + f"request has {len(messages)} messages)"
    event = HistoryEvent.objects.filter(session_id=talk.session, kind="refused").latest("pk")
    assert (event.cause, event.message_index) == ("message_edited", 2)
    assert attach(talk.turn("four")) == ("append", "2", None)


def test_an_edit_in_the_last_turn_goes_back_by_one(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    edited = [*talk.history[:2], user("instead"), says("re two"), user("three")]
    answer = talk.send(edited)
    assert attach(answer) == ("rollback", "0", "message_edited")
    shown = talk.client.get(talk.session)
    assert len(shown["records"]) == 2
    assert shown["records"][1]["request"]["messages"] == edited
    assert Session.objects.get(pk=talk.session).rollbacks == 1


def test_the_same_history_again_asks_for_one_more_reply(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    served = talk.tokens
    answer = talk.send(talk.history, "and")
    assert attach(answer) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    assert attach(talk.send([*talk.history, says("and"), user("two")])) == ("append", "1", None)


def test_few_shot_replies_are_prompt_and_never_checkpoints(pair: Pair) -> None:
    talk = Talk(pair)
    shots = [user("q"), says("a"), user("q2"), says("a2")]
    talk.history = [*shots]
    talk.turn("one")
    talk.turn("two")
    refusal = talk.refused([*shots[:3], says("edited"), *talk.history[4:]], 400, "rollback_too_deep")
    assert "discard_count=2 " in refusal
    fresh = Talk(pair)
    fresh.history = [*shots]
    fresh.turn("one")
    answer = fresh.send([*shots[:3], says("edited"), user("one")])
    assert attach(answer) == ("rollback", None, "assistant_edited")
    assert len(fresh.client.get(fresh.session)["records"]) == 1


def test_an_empty_history_after_one_turn_is_refused_and_changes_nothing(pair: Pair) -> None:
    talk = Talk(pair)
    talk.refused([], 400, "invalid_messages")
    talk.turn("one")
    talk.refused([], 400, "invalid_messages")
    assert attach(talk.turn("two")) == ("append", "0", None)


def test_stored_spelling_wins_in_tokens_and_history(pair: Pair) -> None:
    """A replayed name is no part of identity: it neither reaches the engine's ids nor the stored history."""
    talk = Talk(pair)
    talk.turn("one")
    served = talk.tokens
    respelled = [{**message, "name": "x"} for message in talk.history]
    answer = talk.send([*respelled, user("two")])
    assert attach(answer) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    shown = talk.client.get(talk.session)
    assert shown["records"][1]["request"]["messages"] == [*respelled, user("two")]
    bodies = (
        Message.objects.filter(session_id=talk.session).order_by("position").values_list("body", flat=True)
    )
    assert [json.loads(body) for body in bodies] == [*talk.history, user("two"), says("yes")]


def test_changed_tools_are_accepted_and_noted(pair: Pair) -> None:
    talk = Talk(pair)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    talk.turn("one", tools=[tool])
    served = talk.tokens
    assert attach(talk.turn("two")) == ("append", "0", None)
    assert talk.fed[: len(served)] == served
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert (event.kind, event.cause) == ("notice", "tools_changed")


def test_a_cut_reply_is_extended_plainly(pair: Pair) -> None:
    talk = Talk(pair)
    talk.engine.script(Reply([30, 31], message=says("cut"), finish="length"))
    reply_of(talk.client.chat(talk.session, [user("one")]))
    served = talk.tokens
    assert talk.send([user("one"), says("cut"), user("two")]).status == 200
    assert talk.fed[: len(served)] == served


def held(engine: FakeEngine, text: str) -> threading.Event:
    gate = threading.Event()
    engine.script(Reply([40, 41], message=says(text), gate=gate))
    return gate


@pytest.mark.parametrize("first", ["retry", "extension"])
def test_of_a_retry_and_an_extension_in_flight_the_first_to_finish_wins(pair: Pair, first: str) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    before = talk.snapshot()
    requests = {"retry": talk.history[:3], "extension": [*talk.history, user("three")]}
    second = "extension" if first == "retry" else "retry"
    with ThreadPoolExecutor(2) as pool:
        gates, futures = {}, {}
        for name in (first, second):
            gates[name] = held(talk.engine, name)
            calls = len(talk.engine.requests)
            futures[name] = pool.submit(talk.client.chat, talk.session, requests[name])
            talk.engine.wait_seen(calls + 1)
            assert talk.snapshot() == before
        gates[first].set()
        won = futures[first].result()
        after = talk.snapshot()
        gates[second].set()
        lost = futures[second].result()
    assert won.headers["x-tito-recorded"] == "true"
    assert reply_of(lost)["content"] == second
    assert (lost.headers["x-tito-recorded"], lost.headers["x-tito-reason"]) == ("false", "concurrent")
    assert talk.snapshot() == after
    assert (
        talk.replies == {"retry": ["re one", "retry"], "extension": ["re one", "re two", "extension"]}[first]
    )


def test_the_version_never_repeats(pair: Pair) -> None:
    """A generation prepared before a rollback and a commit, after which the counter is what it was."""
    talk = Talk(pair)
    talk.turn("one")
    talk.turn("two")
    with ThreadPoolExecutor(1) as pool:
        gate = held(talk.engine, "stale")
        calls = len(talk.engine.requests)
        stale = pool.submit(talk.client.chat, talk.session, [*talk.history, user("three")])
        talk.engine.wait_seen(calls + 1)
        assert attach(talk.send(talk.history[:3], "re two")) == ("rollback", "0", "retry")
        gate.set()
        assert stale.result().headers["x-tito-recorded"] == "false"
    assert len(talk.client.get(talk.session)["records"]) == 2


FAMILIES = {
    "qwen3": ("Qwen3TITOTokenizer", "clear_thinking", False),
    "qwen35": ("Qwen35TITOTokenizer", "clear_thinking", False),
    "qwennext": ("QwenNextTITOTokenizer", "clear_thinking", False),
    "nemotron3": ("Nemotron3TITOTokenizer", "truncate_history_thinking", False),
    "glm47": ("GLM47TITOTokenizer", "clear_thinking", False),
    "kimi25": ("Kimi25TITOTokenizer", "preserve_thinking", True),
    "kimi26": ("Kimi26TITOTokenizer", "preserve_thinking", True),
}
TEMPLATES = {"glm47": "glmish", "kimi25": "kimiish", "kimi26": "kimiish"}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_kwargs_that_contradict_a_family_are_refused_by_its_name(family: str) -> None:
    name, key, constant = FAMILIES[family]
    with family_server(family, TEMPLATES.get(family, "chatml"), TITO_HISTORY_POLICY="rollback") as pair:
        talk = Talk(pair)
        talk.turn("one")
        for value in (not constant, "x", None, []):
            if value == constant:
                continue
            text = talk.refused([], 400, "invalid_template_kwargs", chat_template_kwargs={"a": 1, key: value})
            assert text == (
                f"chat template kwarg {key}={value!r} conflicts with the value registered for {name}: "
                f"{constant!r}"
            )
        text = talk.refused([], 400, "invalid_template_kwargs", chat_template_kwargs=[1])
        assert text == "chat_template_kwargs must be an object"
        for same in (constant, int(constant), None):
            kwargs = None if same is None else {key: same}
            talk.turn("more", chat_template_kwargs=kwargs)
            assert talk.engine.bodies[-1]["chat_template_kwargs"] == {key: constant}
