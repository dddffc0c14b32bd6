"""An engine that renders the messages itself (`vllm-chat`): what it says it was fed is what is stored."""

from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import HistoryEvent, Node, Record, UnattachedReply
from sessions_app.packing import unpack_ids
from tests.client import Answer, Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.test_bad_input import started
from tests.integration.test_cases import says, toy_server

Pair = tuple[Client, FakeEngine]


@pytest.fixture(scope="module")
def toy(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("toy")
    with django_db_blocker.unblock(), toy_server(folder, TITO_BACKEND="vllm-chat") as served:
        yield served


def asked(pair: Pair, session: str, messages: list[Any], fed: list[int], **headers: str) -> Answer:
    client, engine = pair
    engine.script(Reply([1120, 2], message=says("x"), prompt_ids=fed))
    return client.chat(session, messages, headers)


def counts(session: str, seq: int) -> tuple[int | None, int | None, int | None]:
    record = Record.objects.get(session_id=session, node_seq=seq)
    return record.prompt_tokens, record.reused_tokens, record.added_tokens


def test_what_was_really_fed_again_is_told(toy: Pair) -> None:
    client, engine = toy
    session, history = started(client, engine, history_policy="linear")
    served = client.tokens(session)
    fed = [*served, 3, 1, 5, 3, 102, 2]
    answer = asked(toy, session, [*history, user("ok")], fed)
    assert answer.headers["x-tito-attach"] == "append"
    assert answer.headers["x-tito-reused-tokens"] == str(len(served))
    assert counts(session, 1) == (len(fed), len(served), len(fed) - len(served))
    assert client.get(session)["metadata"]["linear_healer"]["healed_prefix_tokens"] == len(served)
    assert client.tokens(session) == [*fed, 1120, 2]


def test_ids_that_do_not_go_on_are_a_root_of_their_own(toy: Pair) -> None:
    client, engine = toy
    session, history = started(client, engine)
    served = client.tokens(session)
    respelled = {**history[1], "more": "the client's own spelling"}
    other = [*served[:3], 999, 998, 997]
    answer = asked(toy, session, [history[0], respelled, user("ok")], other)
    assert (answer.headers["x-tito-attach"], answer.headers["x-tito-cause"]) == ("fork", "engine_rerender")
    assert answer.headers["x-tito-reused-tokens"] == "0"
    assert "x-tito-parent" not in answer.headers
    assert counts(session, 1) == (len(other), 0, len(other))
    event = HistoryEvent.objects.get(session_id=session, node_seq=1)
    assert (event.cause, event.compared_seq, event.token_index) == ("engine_rerender", 0, 3)
    (record,) = client.get(session)["records"]
    assert record["request"]["messages"] == [history[0], respelled, user("ok")]
    assert client.tokens(session) == [*other, 1120, 2]


def test_in_rollback_it_is_a_prefix_mismatch_and_the_reply_is_kept(toy: Pair) -> None:
    client, engine = toy
    session, history = started(client, engine, history_policy="rollback")
    served = client.tokens(session)
    before = client.call("GET", f"/sessions/{session}").body
    other = [*served[:3], 999, 998]
    key = {"Idempotency-Key": "k"}
    answer = asked(toy, session, [*history, user("ok")], other, **key)
    n = len(served)
    assert (answer.status, answer.code) == (500, "prefix_mismatch")
    assert answer.json == {
        "error": f"pretokenized prefix mismatch: stored {n} tokens (checking first {n}, allowing 0 trailing) "
        f"are not a prefix of prompt_token_ids + completion_token_ids (7 tokens), first mismatch at index 3, "
        f"matched 3/{n} prefix tokens"
    }
    assert (answer.headers["x-tito-recorded"], answer.headers["x-tito-reason"]) == (
        "false",
        "prefix_mismatch",
    )
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.get(session_id=session, state="late")
    assert (record.reason, record.error_code, record.reused_tokens) == (
        "prefix_mismatch",
        "prefix_mismatch",
        0,
    )
    kept = UnattachedReply.objects.get(session_id=session, record_id=record.pk)
    assert (unpack_ids(kept.prompt).tolist(), unpack_ids(kept.completion).tolist()) == (other, [1120, 2])
    assert HistoryEvent.objects.get(session_id=session, record_id=record.pk).cause == "engine_rerender"
    going_on = [*served, 3, 1, 5, 3]
    again = asked(toy, session, [*history, user("ok")], going_on, **key)
    assert (again.status, again.headers["x-tito-attach"]) == (200, "append")
    assert "x-tito-replayed" not in again.headers


def test_a_boundary_id_may_give_way(django_db_setup, django_db_blocker) -> None:
    """Family glm47: the stop token is the next message's opener, and may be the wrong one."""
    with django_db_blocker.unblock(), family_server("glm47", "glmish", TITO_BACKEND="vllm-chat") as pair:
        client, engine = pair
        session = client.create()
        engine.script(Reply([97, 260], message=says("a"), prompt_ids=[1, 2, 3]))
        answer = client.chat(session, [user("q")])
        assert answer.status == 200, answer.body
        history = [user("q"), says("a"), {"role": "tool", "tool_call_id": "c", "content": "r"}]
        fed = [1, 2, 3, 97, 262, 114, 261]
        engine.script(Reply([98, 260], message=says("b"), prompt_ids=fed))
        answer = client.chat(session, history)
        assert answer.headers["x-tito-attach"] == "append"
        assert Node.objects.get(session_id=session, seq=1).prompt_tokens == len(fed)
        assert counts(session, 1) == (7, 4, 3)
        assert HistoryEvent.objects.get(session_id=session, node_seq=1).cause == "boundary_trim"
        assert client.tokens(session) == [*fed, 98, 260]
