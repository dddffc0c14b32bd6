"""Reminders that Claude Code injects and drops again: one chain under its profile, a fork without."""

import itertools
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from sessions_app.history.harness.profiles import BUILT_IN_PROFILES
from sessions_app.turns.reading import respelled
from tests.fakes.engine import FakeEngine, Reply

FIRST, SECOND, THIRD = [104, 105, 106], [107, 108], [109]
CALL = {"id": "call_A1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = Reply(
    ids=FIRST, message={"role": "assistant", "content": "", "tool_calls": [CALL]}, finish="tool_calls"
)


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in blocks]}


PLAN = "<system-reminder>\nplan mode\n</system-reminder>\n"
LISTED = "<system-reminder>the todo list is empty</system-reminder>"
RESULT = {"type": "tool_result", "tool_use_id": "toolu_A1", "content": "a.txt"}
REMINDED = {**RESULT, "content": f"a.txt\n\n{LISTED}"}
MARKED = {**RESULT, "cache_control": {"type": "ephemeral"}}
USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_A1", "name": "ls", "input": {}}]}
OK = {"role": "assistant", "content": [text("ok")]}
VARIANTS = {
    "plain": [user(RESULT)],
    "behind": [user(RESULT, PLAN)],
    "before": [user(LISTED, RESULT)],
    "around": [user(LISTED, RESULT, PLAN)],
    "inside": [user(REMINDED)],
    "apart": [user(RESULT), user(PLAN)],
    "apart, before": [{"role": "user", "content": PLAN}, user(RESULT)],
    "several in one text": [user(RESULT, f"{PLAN}\n{LISTED}")],
    "several blocks": [user(RESULT, PLAN, LISTED)],
    "marked": [user(MARKED, text(PLAN, cache_control={"type": "ephemeral"}))],
    "a system message": [user(RESULT), {"role": "system", "content": "plan mode"}],
}


class Agent:
    """A conversation: a question, a call and its result, then two more turns."""

    def __init__(self, served: tuple[httpx.Client, FakeEngine], **options: Any) -> None:
        self.client, self.engine = served
        self.session = self.client.post("/sessions", json=options).json()["session_id"]

    def ask(self, reply: Reply, messages: list[Any]) -> httpx.Response:
        self.engine.script(reply)
        body = {"system": "Help.", "messages": messages, "max_tokens": 9}
        response = self.client.post(f"/sessions/{self.session}/v1/messages", json=body)
        assert response.status_code == 200, response.text
        return response

    def hold(
        self, *variants: list[Any], start: Any = ("hello",), restart: Any = None
    ) -> list[httpx.Response]:
        """Turns whose tool result is told in these ways, one after the other."""
        question = user(*start)
        replies = [CALLING, Reply(ids=SECOND), *(Reply(ids=THIRD) for _ in variants[1:])]
        responses = [self.ask(replies[0], [question])]
        said: list[Any] = []
        for variant, reply in zip(variants, replies[1:], strict=True):
            messages = [user(*(restart or start)), USED, *variant, *said]
            responses.append(self.ask(reply, messages))
            said += [OK, user("go on")]
        return responses

    def kinds(self) -> list[str]:
        nodes = self.client.get(f"/api/sessions/{self.session}/nodes").json()["nodes"]
        return [node["attach_kind"] for node in nodes]

    def fed(self) -> list[list[int]]:
        return [body["input_ids"] for body in self.engine.bodies[-len(self.kinds()) :]]

    def rewrites(self) -> list[dict[str, Any]]:
        return [event for event in self.events() if event["kind"] == "rewrite"]

    def events(self) -> list[dict[str, Any]]:
        told = self.client.get(f"/api/sessions/{self.session}/events").json()
        return list(told["events"])


def served_ids(fed: list[list[int]], at: int) -> list[int]:
    return [*fed[at], *(FIRST, SECOND, THIRD)[min(at, 2)]]


CHANGES = list(itertools.permutations(VARIANTS, 2))
FROM_AND_TO_PLAIN = [pair for pair in CHANGES if "plain" in pair]


@pytest.mark.parametrize(
    ("policy", "before", "after"),
    [
        *(("tree", *pair) for pair in CHANGES),
        *((policy, *pair) for policy in ("linear", "rollback") for pair in FROM_AND_TO_PLAIN),
    ],
)
def test_reminders_come_go_and_move(
    served: tuple[httpx.Client, FakeEngine], policy: str, before: str, after: str
) -> None:
    agent = Agent(served, harness="claude-code", history_policy=policy)
    agent.hold(VARIANTS[before], VARIANTS[after], VARIANTS[after])
    assert agent.kinds() == ["root", "append", "append", "append"]
    fed = agent.fed()
    for at in range(3):  # what is fed stays the stored ids
        served_before = served_ids(fed, at)
        assert fed[at + 1][: len(served_before)] == served_before
    rewrites = agent.rewrites()
    assert {event["detail"] for event in rewrites} <= {"claude-code/system-reminders"}
    assert rewrites or "plain" not in (before, after)
    assert {event["node_seq"] for event in rewrites} <= {2}  # told once: the next turn spells it the same


@pytest.mark.parametrize("harness", [None, "auto", "anthropic"])
def test_without_the_profile_nothing_is_loosened(
    served: tuple[httpx.Client, FakeEngine], harness: str | None
) -> None:
    agent = Agent(served, **({} if harness is None else {"harness": harness}))
    responses = agent.hold(VARIANTS["behind"], VARIANTS["plain"])
    assert agent.kinds() == ["root", "append", "fork"]
    assert responses[-1].headers["X-Tito-Cause"] == "message_removed"
    assert agent.rewrites() == []


def test_what_came_and_what_went_is_told(served: tuple[httpx.Client, FakeEngine]) -> None:
    agent = Agent(served, harness="claude-code")
    agent.hold(VARIANTS["behind"], [user(LISTED, RESULT)])
    come, gone = agent.rewrites()
    assert (come["message_index"], come["field"], come["stored_value"]) == (3, "messages", None)
    assert "todo" in come["replayed_value"]
    assert (gone["message_index"], gone["field"], gone["replayed_value"]) == (5, "messages", None)
    assert "plan" in gone["stored_value"]
    assert {event["cause"] for event in (come, gone)} == {"harness_rewrite"}


def test_a_request_reads_back_as_it_was_sent(served: tuple[httpx.Client, FakeEngine]) -> None:
    from sessions_app.models import Message, Record

    agent = Agent(served, harness="claude-code")
    agent.hold(VARIANTS["behind"], [user(LISTED, RESULT)], [user(LISTED, RESULT)])
    records = list(Record.objects.filter(session_id=agent.session).order_by("id"))
    messages = Message.objects.filter(session_id=agent.session).order_by("node_seq", "position")
    stored = [json.loads(message.body) for message in messages]
    reminded = {"role": "user", "content": PLAN}
    assert stored[3:5] == [{"role": "tool", "tool_call_id": "call_A1", "content": "a.txt"}, reminded]
    told = respelled(stored[:6], records[2].raw_leading or "")
    assert told == [*stored[:3], {"role": "user", "content": LISTED}, stored[3], stored[5]]
    assert json.loads(records[2].client_params or "")["replayed"]["3"] == [user(LISTED, RESULT)]
    assert (records[3].raw_base, records[3].raw_leading) == (7, None)


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
def test_every_request_is_shown_as_it_was_sent(served: tuple[httpx.Client, FakeEngine], policy: str) -> None:
    agent = Agent(served, harness="claude-code", history_policy=policy)
    agent.hold(*(VARIANTS[name] for name in ("behind", "before", "plain", "inside", "around", "around")))
    sent = [body["messages"] for body in agent.engine.bodies[-len(agent.kinds()) :]]
    shown = agent.client.get(f"/sessions/{agent.session}").json()["records"]
    assert [record["request"]["messages"] for record in shown] == sent


def test_new_reminders_are_fed(served: tuple[httpx.Client, FakeEngine]) -> None:
    agent = Agent(served, harness="claude-code")
    agent.hold(VARIANTS["plain"])
    messages = [user("hello"), USED, *VARIANTS["plain"], OK]
    agent.ask(Reply(ids=THIRD), [*messages, user(PLAN)])
    fed = agent.fed()
    tail = bytes(each for each in fed[-1][len(fed[-2]) :] if each < 256).decode(errors="replace")
    assert "plan mode" in tail
    assert agent.kinds() == ["root", "append", "append"]


def test_a_first_message_may_gain_and_lose_reminders(served: tuple[httpx.Client, FakeEngine]) -> None:
    agent = Agent(served, harness="claude-code")
    agent.hold(VARIANTS["plain"], start=(PLAN, "hello"), restart=("hello", LISTED))
    assert agent.kinds() == ["root", "append"]


@pytest.mark.parametrize("older", [True, False])
def test_of_two_paths_that_differ_in_reminders_the_one_that_was_sent_goes_on(
    served: tuple[httpx.Client, FakeEngine], older: bool
) -> None:
    agent = Agent(served, harness="claude-code")
    same = {"role": "assistant", "content": "same"}
    hello, reminded = user("hello"), [user("go on", reminder) for reminder in (PLAN, LISTED)]
    agent.ask(Reply(ids=FIRST, message={"role": "assistant", "content": "ok"}), [hello])
    for told, ids in zip(reminded, (SECOND, THIRD), strict=True):
        agent.ask(Reply(ids=ids, message=same), [hello, OK, told])
    said = {**same, "content": [text("same")]}
    history = [hello, OK, reminded[0 if older else 1], said]
    answer = agent.ask(Reply(ids=THIRD), [*history, user("more")])
    assert answer.headers["X-Tito-Parent"] == ("1" if older else "2")
    assert agent.rewrites() == []
    again = agent.ask(Reply(ids=THIRD), [*history, user("other")])
    assert again.headers["X-Tito-Parent"] == ("1" if older else "2")
    assert agent.kinds() == ["root", "append", "retry", "append", "fork"]


def test_a_changed_result_still_forks(served: tuple[httpx.Client, FakeEngine]) -> None:
    agent = Agent(served, harness="claude-code")
    responses = agent.hold(VARIANTS["behind"], [user({**RESULT, "content": "b.txt"}, LISTED)])
    assert agent.kinds() == ["root", "append", "fork"]
    [fork] = [event for event in agent.events() if event["kind"] == "fork"]
    assert (fork["cause"], fork["message_index"], fork["field"]) == ("message_edited", 3, "content")
    assert responses[-1].headers["X-Tito-Cause"] == "message_edited"


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
@pytest.mark.parametrize("harness", ["claude-code", "none"])
def test_what_if_places_them_as_serving_does(
    served: tuple[httpx.Client, FakeEngine], policy: str, harness: str
) -> None:
    from sessions_app.insight.what_if.asked import load_requests
    from sessions_app.insight.what_if.setup import Changes, Own, setup_of
    from sessions_app.insight.what_if.simulate import replay

    agent = Agent(served, harness=harness, history_policy=policy)
    names = ("behind", "before", "plain") if (policy, harness) != ("rollback", "none") else ("plain", "plain")
    agent.hold(*(VARIANTS[name] for name in names))
    nodes = agent.client.get(f"/api/sessions/{agent.session}/nodes").json()["nodes"]
    requests = load_requests(UUID(agent.session))
    setup = setup_of(Own(policy, "strict", "reset", 1, harness), Changes(), BUILT_IN_PROFILES)
    placed = replay(requests.asked, setup, requests.refused).placed
    assert [(one.parent, one.kind, one.cause) for one in placed] == [
        (node["parent_seq"], node["attach_kind"], node["cause"]) for node in nodes
    ]
    tolerant = setup_of(Own("tree", "strict", "reset", 1, "claude-code"), Changes(), BUILT_IN_PROFILES)
    parents = [one.parent for one in replay(requests.asked, tolerant).placed]
    assert parents == [None, *range(len(nodes) - 1)]
