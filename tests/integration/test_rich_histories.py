"""Histories in every spelling, cut, edited and grown, attach where the reference's own search puts them.

Tool calls with odd arguments, null and missing contents, reasoning that comes and goes, few-shot replies,
roles in any order; the stored spelling wins in tokens, the client's own stands in GET.
"""

import copy
import random
from collections.abc import Iterator

import pytest

from sessions_app.history.matchers.registry import resolve_matcher
from tests.client import Client
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.rich_histories import Message, Node, Reference, new_message, reply, respelled

Pair = tuple[Client, FakeEngine]
STEPS = 20


@pytest.fixture(scope="module")
def pair(django_db_setup, django_db_blocker) -> Iterator[Pair]:
    with django_db_blocker.unblock(), family_server("qwen3") as served:
        yield served


def request_from(chance: random.Random, reference: Reference) -> list[Message]:
    """What an agent might send next."""
    nodes = len(reference.nodes)
    known = chance.choice([nodes - 1, chance.randrange(nodes)]) if nodes else None
    stored = reference.messages(known)
    if chance.random() < 0.2:
        return copy.deepcopy(stored[:-1])
    request = [respelled(chance, one) if chance.random() < 0.2 else copy.deepcopy(one) for one in stored]
    if request and chance.random() < 0.2:
        at = chance.randrange(len(request))
        request = chance.choice([request[:at], request[:at] + request[at + 1 :], request[:at] * 2])
    return [*request, *(new_message(chance) for _ in range(chance.choice([0, 1, 1, 2])))]


@pytest.mark.parametrize("policy", ["tree", "rollback"])
@pytest.mark.parametrize("matcher", ["exact", "strict", "loose_tool_call", "role_content_only"])
def test_requests_attach_where_the_reference_attaches_them(pair: Pair, policy: str, matcher: str) -> None:
    client, _ = pair
    for seed in range(2):
        chance = random.Random(seed)
        session = client.create(history_policy=policy, message_matcher=matcher)
        reference = Reference(policy, resolve_matcher(matcher))
        for _ in range(STEPS):
            step(pair, session, reference, chance)


def step(pair: Pair, session: str, reference: Reference, chance: random.Random) -> None:
    client, engine = pair
    request, message = request_from(chance, reference), reply(chance)
    if reference.nodes and chance.random() < 0.4:
        message = copy.deepcopy(reference.nodes[-1].delta[-1])  # may make a twin
    expected, ids = reference.attach(request), [chance.randrange(97, 105), 258][: chance.choice([1, 2, 2])]
    before = client.call("GET", f"/sessions/{session}").body
    engine.script(Reply(ids, message=message))
    answer = client.chat(session, request)
    if answer.status != 200:
        engine._script.clear()
        refused = isinstance(expected, str)
        assert refused or (not request and expected is None), answer.body
        assert answer.code == ("rollback_too_deep" if refused else "invalid_messages")
        assert not refused or answer.json == {"error": expected}
        assert client.call("GET", f"/sessions/{session}").body == before
        return
    told = answer.headers.get("x-tito-parent")
    parent = None if told is None else int(told)
    assert parent == expected
    fed = engine.bodies[-1]["input_ids"]
    served = [] if parent is None else reference.nodes[parent].tokens
    assert fed[: len(served)] == served
    delta = [*copy.deepcopy(request[len(reference.messages(parent)) :]), message]
    reference.nodes.append(Node(parent, delta, fed + ids))
    shown = client.get(session)
    assert shown["metadata"]["accumulated_token_ids"] == fed + ids
    assert repr(shown["records"][-1]["request"]["messages"]) == repr(request)
    assert len(shown["records"]) == len(reference.path(reference.active))
