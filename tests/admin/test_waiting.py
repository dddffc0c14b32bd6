"""Spans that wait for a session: found, and handed to one by hand."""

import uuid

import pytest
from django.test import Client

from sessions_app.admin.roles import OPERATOR, VIEWER
from sessions_app.models import Session
from tests.admin.seeding import Login, Seeds, Server
from tests.admin.test_pages import page, session_url, twin
from tests.integration.spans_support import batch, span, stored, waiting

LIST = "/admin/trainer_export/waitingspan/"


def assign_url(trace: int) -> str:
    return f"{LIST}{trace:032x}/assign/"


@pytest.fixture
def trace(seeded: tuple[Server, Seeds]) -> int:
    """Two spans that name nothing."""
    server, _ = seeded
    number = uuid.uuid4().int
    assert server.post("/v1/traces", batch(span(1, number), span(2, number, 1)))[2] == {}
    return number


def test_spans_are_found_by_the_beginning_of_their_trace_and_by_what_is_known_of_it(
    staff: Client, trace: int
) -> None:
    def found(query: str) -> list[str]:
        rows = twin(staff, f"{LIST}?{query}")["rows"]
        return sorted(row["span_id"][-1] for row in rows if row["trace_id"] == f"{trace:032x}")

    assert found(f"q={trace:032x}"[:16]) == ["1", "2"]
    assert found(f"trace_id={trace:032x}&trace=unknown") == ["1", "2"]
    assert found(f"trace_id={trace:032x}&trace=known") == []
    assert found("q=no+hex") == []
    assert f"{trace:032x}/assign/" in page(staff, f"{LIST}?q={trace:032x}")


def test_what_waits_is_assigned_after_a_question_and_kept_in_the_log(
    login: Login,
    seeded: tuple[Server, Seeds],
    trace: int,
) -> None:
    server, _ = seeded
    rollout, operator = uuid.uuid4().hex, login(OPERATOR)
    server.post("/v1/traces", batch(span(9, uuid.uuid4().int), tito__rollout_id=rollout))
    session = Session.objects.get(rollout_id=rollout)
    assert "2 spans of trace" in page(operator, assign_url(trace))
    assert len(waiting(trace)) == 2
    assert operator.post(assign_url(trace), {"choice": f" {rollout} "}).status_code == 302
    assert waiting(trace) == []
    assert [(row.session_id, row.span_id[-1]) for row in stored(trace)] == [
        (session.id, "1"),
        (session.id, "2"),
    ]
    (entry,) = twin(operator, session_url(session.id.hex))["actions"]
    assert entry["text"] == f"took 2 waiting spans of trace {trace:032x}"
    assert operator.get(assign_url(trace)).status_code == 404


@pytest.mark.parametrize("named", ["", "nobody", "0" * 32, "\0"])
def test_what_does_not_exist_takes_nothing(login: Login, trace: int, named: str) -> None:
    operator = login(OPERATOR)
    assert operator.post(assign_url(trace), {"choice": named}).status_code == 302
    assert "no such rollout or session" in page(operator, assign_url(trace))
    assert len(waiting(trace)) == 2


def test_viewers_assign_nothing(login: Login, trace: int, seeds: Seeds) -> None:
    viewer = login(VIEWER)
    assert viewer.get(assign_url(trace)).status_code == 403
    assert viewer.post(assign_url(trace), {"choice": seeds.plain}).status_code == 403
    assert len(waiting(trace)) == 2
