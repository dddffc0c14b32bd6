"""Random requests against a running server, compared step by step with a model that is only lists.

Extensions, retries, edits, deletions, respellings, failing engines, refused bodies and pairs in flight, for
each policy. After every step GET must show just what the model holds; the engine must have been fed the
stored ids of the attach point and the new messages' ids behind them; nothing else may have changed.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sessions_app.models import HistoryEvent, Record
from tests.client import Answer, Client
from tests.fakes import engine as fake
from tests.fakes.engine import FakeEngine
from tests.integration.forest_model import CONTENT, Forest, Message, Plan, Reply
from tests.integration.test_cases import toy_server

TEXTS = st.sampled_from(sorted(CONTENT))
NUMBERS = st.integers(0, 2**16)
REPLIES = st.sampled_from(
    [
        Reply("ab", [1097, 1098, 2]),
        Reply("ab", [100, 2]),
        Reply("ok", [1111, 1107]),
        Reply("ok", [102, 2]),
        Reply("q", [1113], cut=True),
    ]
)
FAULTS = st.sampled_from(["500", "nan_logprob", "wrong_length", "cut", "cut_body", "malformed_json"])


@pytest.fixture(scope="module")
def served(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine]]:
    with django_db_blocker.unblock(), toy_server(tmp_path_factory.mktemp("toy")) as pair:
        yield pair


class Machine(RuleBasedStateMachine):
    """One session and its model."""

    client: Client
    engine: FakeEngine
    policy: str

    @initialize()
    def create(self) -> None:
        self.session = self.client.create(history_policy=self.policy)
        self.forest = Forest(self.policy)
        self.outcomes: Counter[str] = Counter()
        self.keys: dict[str, tuple[list[Message], Answer]] = {}

    @rule(at=NUMBERS, texts=st.lists(TEXTS, max_size=2), reply=REPLIES, respelled=st.booleans())
    def extend(self, at: int, texts: list[str], reply: Reply, respelled: bool) -> None:
        self.ask(self.extension(at, texts, respelled), reply)

    @rule(texts=st.lists(TEXTS, min_size=1, max_size=2), reply=REPLIES)
    def go_on(self, texts: list[str], reply: Reply) -> None:
        self.ask([*self.forest.messages(self.forest.active), *users(texts)], reply)

    @rule(at=NUMBERS, reply=REPLIES, respelled=st.booleans())
    def send_again(self, at: int, reply: Reply, respelled: bool) -> None:
        self.ask(spelled(self.history(at)[:-1], respelled), reply)

    @rule(at=NUMBERS, index=NUMBERS, text=TEXTS, more=st.lists(TEXTS, max_size=1), reply=REPLIES)
    def edit(self, at: int, index: int, text: str, more: list[str], reply: Reply) -> None:
        request = [*self.history(at), *users(more)]
        if request:
            index %= len(request)
            request[index] = {**request[index], "content": text}
        self.ask(request, reply)

    @rule(at=NUMBERS, index=NUMBERS, reply=REPLIES)
    def leave_one_out(self, at: int, index: int, reply: Reply) -> None:
        request = self.history(at)
        if request:
            del request[index % len(request)]
        self.ask(request, reply)

    @rule(at=NUMBERS, count=NUMBERS, reply=REPLIES)
    def send_less(self, at: int, count: int, reply: Reply) -> None:
        request = self.history(at)
        self.ask(request[: count % (len(request) + 1)], reply)

    @rule(texts=st.lists(TEXTS, min_size=1, max_size=3), shot=TEXTS, reply=REPLIES)
    def start_anew(self, texts: list[str], shot: str, reply: Reply) -> None:
        self.ask([*users(texts), {"role": "assistant", "content": shot}, *users(texts[:1])], reply)

    @rule(at=NUMBERS, texts=st.lists(TEXTS, max_size=1), fault=FAULTS)
    def fail(self, at: int, texts: list[str], fault: str) -> None:
        request = self.extension(at, texts, False)
        if self.forest.plan(request).error:
            return
        self.engine.script(fault)
        assert self.call(request).status >= 500
        self.outcomes["upstream_error"] += 1

    @rule(key=st.sampled_from("abc"), at=NUMBERS, texts=st.lists(TEXTS, max_size=2), reply=REPLIES)
    def ask_by_key(self, key: str, at: int, texts: list[str], reply: Reply) -> None:
        request = self.extension(at, texts, False)
        if key not in self.keys:
            answer = self.ask(request, reply, key)
            if answer.status == 200:
                self.keys[key] = request, answer
            return
        first, answer = self.keys[key]
        calls = len(self.engine.requests)
        again = self.call(first, key)
        assert (again.status, again.body) == (200, answer.body)
        assert again.headers["x-tito-replayed"] == "true"
        assert again.headers["x-tito-node"] == answer.headers["x-tito-node"]
        self.outcomes["replayed"] += 1
        if request != first:
            assert self.call(request, key).code == "idempotency_conflict"
            self.outcomes["refused"] += 1
        assert len(self.engine.requests) == calls

    @rule(at=NUMBERS, field=st.sampled_from([{"input_ids": [1]}, {"n": 2}, {"tools": 3}]))
    def forbid(self, at: int, field: dict[str, Any]) -> None:
        assert self.call(self.history(at), **field).status == 400
        self.outcomes["refused"] += 1

    @rule(at=NUMBERS, there=NUMBERS, texts=st.lists(TEXTS, min_size=2, max_size=2), swapped=st.booleans())
    def at_once(self, at: int, there: int, texts: list[str], swapped: bool) -> None:
        requests = [self.extension(at, texts[:1], False), self.extension(there, texts[1:], False)]
        plans = [self.forest.plan(request) for request in requests]
        if any(plan.error for plan in plans):
            return
        replies = [Reply("ab", [1097, 1098, 2]), Reply("ok", [1111, 1107])]
        gates, calls = [threading.Event(), threading.Event()], len(self.engine.requests)
        with ThreadPoolExecutor(2) as pool:
            flying = []
            for number, request in enumerate(requests):
                self.engine.script(scripted(replies[number], gates[number]))
                flying.append(pool.submit(self.call, request))
                self.engine.wait_seen(calls + number + 1)
                self.as_the_model()
            for number in (1, 0) if swapped else (0, 1):
                gates[number].set()
                answer = flying[number].result()
                fed = self.engine.bodies[calls + number]["input_ids"]
                self.answered(requests[number], plans[number], replies[number], answer, fed)

    @invariant()
    def as_the_model(self) -> None:
        forest, shown = self.forest, self.client.get(self.session)
        path = forest.path(forest.active)
        records, metadata = shown["records"], shown["metadata"]
        assert [record["request"]["messages"] for record in records] == [forest.nodes[at].raw for at in path]
        assert [record["request"]["input_ids"] for record in records] == [
            forest.nodes[at].prompt for at in path
        ]
        assert [record["response"]["choices"][0]["message"] for record in records] == [
            forest.nodes[at].reply.message for at in path
        ]
        assert metadata["accumulated_token_ids"] == (forest.nodes[path[-1]].tokens if path else [])
        if self.policy != "rollback":
            assert metadata["tree"] == self.tree(metadata["tree"])
        if self.policy == "linear":
            assert list(metadata["linear_healer"].values()) == [*forest.healed, 0]

    def tree(self, shown: dict[str, Any]) -> dict[str, Any]:
        """`metadata.tree` of the model; times and ids of replies as shown."""
        nodes = [
            {
                "id": seq, "parent": node.parent, "seq": seq, "truncated": node.reply.cut,
                "committed_at": shown["nodes"][seq]["committed_at"],
                "completion_span": [len(node.prompt), len(node.tokens)], "num_tokens": len(node.tokens),
                "response_id": shown["nodes"][seq]["response_id"],
            }
            for seq, node in enumerate(self.forest.nodes)
        ]  # fmt: skip
        ends = [seq for seq in range(len(nodes)) if not self.forest.children(seq)]
        leaves = [{"node_id": seq, "path_node_ids": self.forest.path(seq)} for seq in ends]
        return {"nodes": nodes, "leaves": leaves}

    def teardown(self) -> None:
        if not hasattr(self, "forest"):
            return
        self.end_while_a_turn_is_generated()
        states = Counter(Record.objects.filter(session_id=self.session).values_list("state", flat=True))
        committed = states.pop("committed", 0) + states.pop("confirmed", 0)
        assert committed == len(self.forest.nodes)
        assert states == self.outcomes

    def end_while_a_turn_is_generated(self) -> None:
        """The reply is kept and nothing else changes; a session that has ended serves no more."""
        gate, before = threading.Event(), self.client.call("GET", f"/sessions/{self.session}").body
        request = [*self.history(0), *users(["z"])]
        if self.forest.plan(request).error:
            return
        calls, deleted = len(self.engine.requests), len(self.forest.nodes) % 2 == 0
        self.engine.script(scripted(Reply("ab", [100, 2]), gate))
        with ThreadPoolExecutor(1) as pool:
            flying = pool.submit(self.call, request)
            self.engine.wait_seen(calls + 1)
            if deleted:
                assert self.client.call("DELETE", f"/sessions/{self.session}").status == 204
            else:
                assert self.client.call("POST", f"/sessions/{self.session}/finish", {}).status < 300
            gate.set()
            answer = flying.result()
        reason = "session_deleted" if deleted else "session_closed"
        assert (answer.status, answer.headers["x-tito-reason"]) == (200, reason)
        self.outcomes["late"] += 1
        after = self.call(request)
        if deleted:
            assert (after.status, after.code) == (404, "session_not_found")
            return
        assert (after.status, after.code) == (409, "session_closed")
        self.outcomes["refused"] += 1
        assert self.client.call("GET", f"/sessions/{self.session}").body == before

    def history(self, at: int) -> list[Message]:
        """All messages of some node's path; [] where there is none."""
        nodes = len(self.forest.nodes)
        return list(self.forest.messages(at % nodes)) if nodes else []

    def extension(self, at: int, texts: list[str], respelled: bool) -> list[Message]:
        return [*spelled(self.history(at), respelled), *users(texts)]

    def call(self, request: list[Message], key: str | None = None, **fields: Any) -> Answer:
        return self.client.chat(self.session, request, {"Idempotency-Key": key} if key else None, **fields)

    def ask(self, request: list[Message], reply: Reply, key: str | None = None) -> Answer:
        plan, calls = self.forest.plan(request), len(self.engine.requests)
        if plan.error:
            answer = self.call(request, key)
            assert (answer.status, answer.code) == plan.error
            assert len(self.engine.requests) == calls
            self.outcomes["refused"] += 1
            return answer
        self.engine.script(scripted(reply))
        answer = self.call(request, key)
        self.answered(request, plan, reply, answer, self.engine.bodies[-1]["input_ids"])
        return answer

    def answered(
        self, request: list[Message], plan: Plan, reply: Reply, answer: Answer, fed: list[int]
    ) -> None:
        """A reply came: it must stand where the model puts it."""
        assert (answer.status, fed) == (200, plan.prompt), answer.body
        seq, kind, cause = self.forest.commit(plan, request, reply)
        told = {name: answer.headers.get(f"x-tito-{name}") for name in ("node", "parent", "attach", "cause")}
        if seq is None:
            assert answer.headers["x-tito-recorded"] == "false"
            self.outcomes["late"] += 1
            return
        assert (told["node"], told["attach"]) == (str(seq), kind)
        assert told["parent"] == (None if plan.parent is None else str(plan.parent))
        reused = len(self.forest.nodes[plan.parent].tokens) if plan.parent is not None else 0
        assert answer.headers["x-tito-reused-tokens"] == str(reused)
        self.explained(seq, kind, cause, told["cause"])

    def explained(self, seq: int, kind: str, cause: str | None, told: str | None) -> None:
        """Whatever is no plain append has a cause and an event."""
        events = HistoryEvent.objects.filter(session_id=self.session, node_seq=seq)
        if kind in ("append", "root"):
            assert told == cause
            assert not events.exclude(kind="notice").exists()
        else:
            assert told is not None
            assert cause in (None, told)
            assert told in events.values_list("cause", flat=True)


def users(texts: list[str]) -> list[Message]:
    return [{"role": "user", "content": text} for text in texts]


def spelled(messages: list[Message], otherwise: bool) -> list[Message]:
    """The same history, or one with a field that no matcher looks at."""
    return [{**message, "name": "n"} for message in messages] if otherwise else messages


def scripted(reply: Reply, gate: threading.Event | None = None) -> fake.Reply:
    finish = "length" if reply.cut else "stop"
    return fake.Reply(reply.ids, message=reply.message, finish=finish, gate=gate)


@pytest.mark.parametrize("policy", ["tree", "rollback", "linear"])
def test_random_requests_do_what_the_model_does(served: tuple[Client, FakeEngine], policy: str) -> None:
    client, engine = served
    bound = type("Bound", (Machine,), {"client": client, "engine": engine, "policy": policy})
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=8,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.generate],  # a step is a round trip: shrinking would take minutes
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
