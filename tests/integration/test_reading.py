"""GET reads any branch, in parts and page by page, without changing what the whole reply is."""

from collections.abc import Iterator

import pytest

from tests.client import Client, reply_of, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server


@pytest.fixture
def forked(tmp_path) -> Iterator[tuple[Client, str]]:
    """0 -> 1 -> 2, and 0 -> 3."""
    with toy_server(tmp_path) as (client, engine):
        session = client.create()
        engine.script(*[Reply([100, 2], message=says("ab"))] * 4)
        first = [user("hello"), reply_of(client.chat(session, [user("hello")]))]
        second = [*first, user("ok"), reply_of(client.chat(session, [*first, user("ok")]))]
        client.chat(session, [*second, user("x")])
        client.chat(session, [*first, user("other")])
        yield client, session


def contents(body: dict) -> list[str]:
    return [record["request"]["messages"][-1]["content"] for record in body["records"]]


def test_the_last_committed_branch_is_shown_and_any_other_can_be_asked_for(forked) -> None:
    client, session = forked
    assert contents(client.get(session)) == ["hello", "other"]
    assert contents(client.get(session, "?leaf=2")) == ["hello", "ok", "x"]
    assert contents(client.get(session, "?node=1")) == ["hello", "ok"]
    assert client.call("GET", f"/sessions/{session}?leaf=9").code == "not_found"
    assert client.call("GET", f"/sessions/{session}?leaf=x").code == "invalid_argument"


def test_parts_leave_out_what_was_not_asked_for(forked) -> None:
    client, session = forked
    whole = client.get(session)
    assert list(whole) == ["session_id", "records", "metadata"]
    only_tree = client.get(session, "?include=tree")
    assert list(only_tree) == ["session_id", "metadata"]
    assert list(only_tree["metadata"]) == ["max_trim_tokens", "tree"]
    light = client.get(session, "?include=records")
    assert light["records"][0]["request"]["input_ids"] is None
    assert light["records"][0]["request"]["messages"] == whole["records"][0]["request"]["messages"]
    assert client.call("GET", f"/sessions/{session}?include=secrets").code == "invalid_argument"


def test_pages_of_records_add_up_to_the_whole(forked) -> None:
    client, session = forked
    whole = client.get(session, "?leaf=2")["records"]
    pages = [client.get(session, f"?leaf=2&after={at}&limit=2")["records"] for at in (0, 2, 4)]
    assert [*pages[0], *pages[1], *pages[2]] == whole
    assert pages[2] == []


def test_an_empty_session_reads_as_empty(tmp_path) -> None:
    with toy_server(tmp_path) as (client, _):
        body = client.get(client.create())
        assert body["records"] == []
        assert body["metadata"]["accumulated_token_ids"] == []
        assert body["metadata"]["tree"] == {"nodes": [], "leaves": []}
