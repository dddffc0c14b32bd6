"""Received spans and their traces."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section
from sessions_app.admin.node import session_link
from sessions_app.presentation.addresses import session_url
from sessions_app.presentation.markup import explained, hex_digest, json_block, link, prose
from trainer_export.admin.trace_page import trace_page
from trainer_export.models import Span, SpanOrigin, Trace, TracedSession

_LONG = ("attributes", "events", "links")


def _moment(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "unknown"
    try:
        return f"{datetime.fromtimestamp(nanoseconds / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"
    except (OverflowError, ValueError, OSError):
        return f"{nanoseconds} ns"


def _lasted(start: int | None, end: int | None) -> str:
    return "unknown" if start is None or end is None else f"{(end - start) / 1e6:,.1f} ms"


@admin.register(Trace)
class TraceAdmin(SessionRowAdmin):
    """One row a trace of a session, newest first."""

    list_display = (
        "label",
        "session_shown",
        "spans_shown",
        "calls",
        "rewards",
        "failed_shown",
        "lasted",
        "last_received_at",
    )
    list_filter = ("last_received_at",)
    when_empty = "OpenTelemetry spans sent to POST /v1/traces make them: see docs/triplets.md."

    def get_urls(self) -> list[URLPattern]:
        """A trace is named by its session and its id."""
        own = path(
            "<str:session_id>/<str:trace_id>/page/", self.admin_site.admin_view(trace_page), name="tito_trace"
        )
        return [own, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a trace."""
        trace = self.get_object(request, object_id)
        if trace is None:
            return super().change_view(request, object_id, form_url, extra_context)
        return trace_page(request, trace.session_id.hex, trace.trace_id)

    @admin.display(description="trace")
    def label(self, trace: Trace) -> SafeString:
        """Its name, or the beginning of its id."""
        return format_html("<code>{}</code> {}", trace.trace_id[:12], prose(trace.name))

    @admin.display(description="session")
    def session_shown(self, trace: Trace) -> SafeString:
        """Its session."""
        return session_link(trace)

    @admin.display(description="spans")
    def spans_shown(self, trace: Trace) -> SafeString:
        """How many, as a link to them."""
        url = reverse("admin:trainer_export_span_changelist")
        return link(
            f"{url}?session={trace.session_id.hex}&trace_id={trace.trace_id}", trace.spans, "its spans"
        )

    @admin.display(description="failed")
    def failed_shown(self, trace: Trace) -> SafeString:
        """Spans with status ERROR."""
        return explained(str(trace.failed) if trace.failed else None, "spans with status ERROR", "bad")

    @admin.display(description="starts")
    def starts(self, trace: Trace) -> str:
        """Earliest start."""
        return _moment(trace.start_ns)

    @admin.display(description="ends")
    def ends(self, trace: Trace) -> str:
        """Latest end."""
        return _moment(trace.end_ns)

    @admin.display(description="lasted")
    def lasted(self, trace: Trace) -> str:
        """From the earliest start to the latest end."""
        return _lasted(trace.start_ns, trace.end_ns)


@admin.register(Span)
class SpanAdmin(SessionRowAdmin):
    """One row a span, newest first."""

    list_display = (
        "label",
        "session_shown",
        "sequence_id",
        "is_call",
        "is_reward",
        "agent",
        "status_shown",
        "lasted",
    )
    list_filter = ("status_code", "is_call", "is_reward", "received_at")
    fieldsets = (
        section(None, "label session_shown trace_id span_id parent_id sequence_id sequence_given kind flags"),
        section("Meaning", "is_call is_reward response_id conversation_id agent_name agent"),
        section("Times", "starts ends lasted received_at"),
        section(
            "Content", "status_shown status_description attributes_shown events_shown links_shown trace_state"
        ),
        section("Dropped by the SDK", "dropped_attributes dropped_events dropped_links"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no attributes."""
        return super().get_queryset(request).defer(*_LONG)

    @admin.display(description="span")
    def label(self, span: Span) -> SafeString:
        """Its name."""
        return prose(span.name or span.span_id)

    @admin.display(description="session")
    def session_shown(self, span: Span) -> SafeString:
        """Its session."""
        return session_link(span)

    @admin.display(description="status")
    def status_shown(self, span: Span) -> SafeString:
        """Status, and what was said about it."""
        return explained(
            span.status_code, span.status_description, "bad" if span.status_code == "ERROR" else ""
        )

    @admin.display(description="starts")
    def starts(self, span: Span) -> str:
        """Start."""
        return _moment(span.start_ns)

    @admin.display(description="ends")
    def ends(self, span: Span) -> str:
        """End."""
        return _moment(span.end_ns)

    @admin.display(description="lasted")
    def lasted(self, span: Span) -> str:
        """Start to end."""
        return _lasted(span.start_ns, span.end_ns)

    @admin.display(description="attributes")
    def attributes_shown(self, span: Span) -> SafeString:
        """JSON object."""
        return json_block(span.attributes)

    @admin.display(description="events")
    def events_shown(self, span: Span) -> SafeString:
        """JSON list."""
        return json_block(span.events or None)

    @admin.display(description="links")
    def links_shown(self, span: Span) -> SafeString:
        """JSON list."""
        return json_block(span.links or None)


@admin.register(SpanOrigin)
class SpanOriginAdmin(SessionRowAdmin):
    """One row a resource and scope."""

    list_display = ("label", "session_shown")
    fieldsets = (section(None, "label session_shown body_shown"),)

    @admin.display(description="origin")
    def label(self, origin: SpanOrigin) -> SafeString:
        """Its digest."""
        return hex_digest(origin.digest)

    @admin.display(description="session")
    def session_shown(self, origin: SpanOrigin) -> SafeString:
        """Its session."""
        return session_link(origin)

    @admin.display(description="resource and scope")
    def body_shown(self, origin: SpanOrigin) -> SafeString:
        """JSON object."""
        return json_block(origin.body)


@admin.register(TracedSession)
class TracedSessionAdmin(SessionRowAdmin):
    """One row a session that spans were received for."""

    list_display = ("label", "last_sequence", "received_at", "labelled_at")
    list_filter = ("received_at",)
    ordering = ("session",)
    fieldsets = (section(None, "session_shown last_sequence received_at labelled_at"),)

    @admin.display(description="session")
    def label(self, traced: TracedSession) -> str:
        """The beginning of its id."""
        return traced.session_id.hex[:12]

    @admin.display(description="session")
    def session_shown(self, traced: Any) -> SafeString:
        """The session."""
        return link(session_url(traced.session_id), traced.session_id.hex)

    def row_values(self, row: Any) -> dict[str, Any]:
        """Named by its session."""
        return super().row_values(row) | {"id": row.session_id}
