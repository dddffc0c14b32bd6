"""Spans that wait for a session: found by trace, and handed to a session by hand."""

import re

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, section
from sessions_app.admin.filters import Choices, ListFilter
from sessions_app.presentation.markup import json_block, link, prose
from trainer_export.admin.assign_page import assign_page
from trainer_export.models import Trace, WaitingSpan

_TRACE_PREFIX = re.compile(r"[0-9a-f]{1,32}\Z")


class KnownTraceFilter(ListFilter):
    """By what is known of their trace."""

    title = "their trace"
    parameter_name = "trace"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [("unknown", "names no session"), ("known", "has spans of sessions")]

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        known = Exists(Trace.objects.filter(trace_id=OuterRef("trace_id")))
        return rows.filter(known) if value == "known" else rows.filter(~known)


@admin.register(WaitingSpan)
class WaitingSpanAdmin(ReadOnlyAdmin):
    """One row a span that names no rollout."""

    list_display = ("label", "trace_shown", "span_id", "received_at", "assign_shown")
    list_filter = (KnownTraceFilter, "received_at")
    search_fields = ("trace_id",)
    search_help_text = "Beginning of a trace id"
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = (section(None, "label trace_shown span_id parent_id received_at assign_shown body_shown"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no bodies."""
        return super().get_queryset(request).defer("body")

    def get_urls(self) -> list[URLPattern]:
        """What waits is handed over a trace at a time."""
        guarded = self.admin_site.admin_view(assign_page)
        return [path("<str:trace_id>/assign/", guarded, name="tito_waiting_assign"), *super().get_urls()]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Spans of the traces that begin so, through the index."""
        term = search_term.strip().lower()
        if not term:
            return queryset, False
        if not _TRACE_PREFIX.match(term):
            return queryset.none(), False
        return queryset.filter(trace_id__range=(term.ljust(32, "0"), term.ljust(32, "f"))), False

    @admin.display(description="span")
    def label(self, span: WaitingSpan) -> SafeString:
        """Its name."""
        return prose(span.name or span.span_id)

    @admin.display(description="trace")
    def trace_shown(self, span: WaitingSpan) -> SafeString:
        """Its trace, as a link to all that waits of it."""
        url = reverse("admin:trainer_export_waitingspan_changelist")
        return link(f"{url}?trace_id={span.trace_id}", span.trace_id, "what waits of this trace")

    @admin.display(description="to do")
    def assign_shown(self, span: WaitingSpan) -> SafeString:
        """The way to hand its trace to a session."""
        url = reverse("admin:tito_waiting_assign", args=[span.trace_id])
        return format_html('<a class="t-button" href="{}">assign</a>', url)

    @admin.display(description="body")
    def body_shown(self, span: WaitingSpan) -> SafeString:
        """JSON object."""
        return json_block(span.body)
