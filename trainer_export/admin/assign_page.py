"""Hands what waits of a trace to a session. Confirmed, and kept in the audit log of that session."""

from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sessions_app.admin.pages.actions import Question, confirmed
from sessions_app.admin.pages.serving import Missing, page
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.models import Session
from sessions_app.presentation.addresses import session_url
from sessions_app.store.tracing import TraceTarget, target_of_attempt, target_of_session
from trainer_export.models import WaitingSpan
from trainer_export.spans.waiting import assign


@page
def assign_page(request: HttpRequest, trace_id: str) -> HttpResponse:
    """Asks for a rollout or session, then hands over."""
    spans = WaitingSpan.objects.filter(trace_id=trace_id)
    if not spans.exists():
        raise Missing(f"Nothing waits of a trace {trace_id!r}.")
    question = _question(trace_id, spans)
    if request.method != "POST":
        return confirmed(request, question, _list_url(), spans[0], lambda _: None)
    target = _target(request.POST.get("choice", "").strip())
    if target is None:
        messages.error(request, "There is no such rollout or session.")
        return HttpResponseRedirect(request.path)
    session = Session.objects.get(pk=target.session_id)

    def perform(_: str) -> str | None:
        count = settled(assign(ORM, trace_id, session.id))
        return f"took {count} waiting spans of trace {trace_id}" if count else None

    return confirmed(request, question, session_url(session.id), session, perform)


def _question(trace_id: str, spans: "QuerySet[WaitingSpan]") -> Question:
    return Question(
        "Assign what waits of a trace",
        f"{spans.count()} spans of trace {trace_id} name no rollout. They become spans of the session named "
        "here, as if they had named it themselves, with its next sequence ids; spans of the trace that are "
        "stored already stay where they are. This cannot be taken back.",
        "Assign",
        asked="rollout id (its newest attempt) or session id",
    )


def _target(named: str) -> TraceTarget | None:
    """A session by its id, else the newest one of a rollout."""
    if not named or "\x00" in named:
        return None
    try:
        found = settled(target_of_session(ORM, UUID(named)))
    except ValueError:
        found = None
    return found or settled(target_of_attempt(ORM, named, None))


def _list_url() -> str:
    return reverse("admin:trainer_export_waitingspan_changelist")
