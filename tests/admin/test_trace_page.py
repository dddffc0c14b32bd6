"""The page of a trace: its waterfall, the rewards of its calls, and why a call is no triplet."""

import uuid
from typing import Any

import pytest
from django.test import Client

from sessions_app.models import Node
from tests.admin.seeding import Seeds, Server
from tests.admin.test_pages import RAW, page, twin
from tests.integration.spans_support import batch, span
from trainer_export.admin.trace_words import REMARKS, USES
from trainer_export.models import Trace
from trainer_export.traces.better.report import Remark, Use

REWARD = {"agentlightning.reward.0.name": "right", "agentlightning.reward.0.value": 0.75}
ODD = "<script>document.title='x'</script> \u202eevil"


def trace_url(session: str, number: int) -> str:
    return f"/admin/trainer_export/trace/{session}/{number:032x}/page/"


def chat(number: int, span_id: int, start: int, response: str | None, name: str = "chat m") -> dict[str, Any]:
    told = {"gen_ai.operation.name": "chat"} | ({"gen_ai.response.id": response} if response else {})
    return span(span_id, number, 2, name, attributes=told, start=start, end=start + 1)


@pytest.fixture(scope="session")
def traced(seeded: tuple[Server, Seeds]) -> tuple[str, int]:
    """A session of two turns with a trace: a served call, one that nobody knows, a failed one, a reward."""
    server, _ = seeded
    number, conversation = uuid.uuid4().int, server.session()
    conversation.turn([{"role": "user", "content": "hello"}])
    response = Node.objects.get(session_id=conversation.id, seq=0).response_id
    failed = chat(number, 6, 14, None) | {"status": {"code": 2, "message": ODD}}
    spans = [
        span(1, number, None, ODD, start=1, end=40),
        span(2, number, 1, "agent", start=2, end=30, attributes={"agent.name": ODD}),
        chat(number, 3, 10, response),
        chat(number, 4, 12, None, ODD),
        failed,
        span(5, number, 2, "agentlightning.annotation", attributes=REWARD, start=13, end=13),
        span(7, number, 99, "orphan", start=20, end=19),
    ]
    assert server.post("/v1/traces", batch(*spans, tito__session_id=conversation.id))[2] == {}
    return conversation.id, number


def lines(staff: Client, url: str) -> dict[int, dict[str, Any]]:
    return {int(one["line"]["span_id"], 16): one["line"] for one in twin(staff, url)["lines"]}


def test_spans_stand_in_the_order_of_the_tree_with_what_became_of_them(
    staff: Client, traced: tuple[str, int]
) -> None:
    found = lines(staff, trace_url(*traced))
    assert list(found) == [1, 2, 3, 4, 5, 6, 7]
    assert [line["depth"] for line in found.values()] == [0, 1, 2, 2, 2, 2, 0]
    assert {number: line["use"] for number, line in found.items()} == {
        1: "structure",
        2: "agent",
        3: "call",
        4: "no_token_ids",
        5: "reward",
        6: "failed_call",
        7: "structure",
    }
    assert found[7]["remarks"] == ["missing_parent", "ends_before_start"]


def test_a_call_shows_its_node_its_ids_and_its_rewards(staff: Client, traced: tuple[str, int]) -> None:
    call = lines(staff, trace_url(*traced))[3]
    node = Node.objects.get(session_id=traced[0], seq=0)
    assert (call["node"], call["prompt_tokens"]) == (0, node.prompt_tokens)
    assert call["response_tokens"] == node.total_tokens - node.prompt_tokens
    assert call["rewards"] == [{"name": "right", "value": 0.75}]
    reward = lines(staff, trace_url(*traced))[5]
    assert (int(reward["detail"], 16), reward["carries"]) == (3, [{"name": "right", "value": 0.75}])


def test_why_there_is_no_triplet_is_said_in_words(staff: Client, traced: tuple[str, int]) -> None:
    text = page(staff, trace_url(*traced))
    assert "Nobody knows its token ids" in text
    assert "The call ended in an error." in text
    missed = twin(staff, trace_url(*traced))["missed"]
    assert [int(one["line"]["span_id"], 16) for one in missed] == [4, 6]


def test_the_reference_s_mode_says_why_as_well(staff: Client, traced: tuple[str, int]) -> None:
    value = twin(staff, trace_url(*traced) + "?mode=compat")
    assert {one["line"]["use"] for one in value["lines"]} >= {"other_name"}
    assert "does not find its name" in page(staff, trace_url(*traced) + "?mode=compat")
    chosen = twin(staff, trace_url(*traced) + "?mode=compat&llm_call_match=%5Echat")
    assert chosen["triplets"] == 2


def test_an_agent_filter_can_be_tried(staff: Client, traced: tuple[str, int]) -> None:
    found = lines(staff, trace_url(*traced) + "?agent_match=nobody")
    assert found[3]["use"] == "agent_not_wanted"
    value = twin(staff, trace_url(*traced) + "?agent_match=(")
    assert "no regular expression" in value["rules_error"]


def test_names_are_escaped_and_what_is_invisible_is_shown(staff: Client, traced: tuple[str, int]) -> None:
    text = page(staff, trace_url(*traced))
    assert not any(raw in text for raw in RAW)
    assert "&lt;script&gt;document" in text


def test_the_row_of_a_trace_is_its_page(staff: Client, traced: tuple[str, int]) -> None:
    row = Trace.objects.get(session_id=traced[0])
    assert "Waterfall" in page(staff, f"/admin/trainer_export/trace/{row.pk}/change/")
    assert str(row.pk) in page(staff, "/admin/trainer_export/trace/")


def test_unknown_traces_are_told(staff: Client, traced: tuple[str, int]) -> None:
    for url in (trace_url(traced[0], 5), trace_url("0" * 32, traced[1]), trace_url("nonsense", 1)):
        assert staff.get(url).status_code == 404
        assert staff.get(url + "?format=json").json()["error"]


def test_pages_are_for_staff_who_may_look(client: Client, traced: tuple[str, int]) -> None:
    assert client.get(trace_url(*traced)).status_code == 302


def test_every_outcome_and_remark_has_its_words() -> None:
    assert set(USES) == set(Use)
    assert set(REMARKS) == set(Remark)
