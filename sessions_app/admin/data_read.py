"""Who looked at which session's text."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, section
from sessions_app.admin.node import session_link
from sessions_app.admin.searching import session_ids
from sessions_app.models import DataRead


@admin.register(DataRead)
class DataReadAdmin(ReadOnlyAdmin):
    """Reads of a kind by a person within an hour, newest first."""

    list_display = ("name", "session_shown", "what", "reads", "first_at", "last_at")
    list_filter = ("what", "last_at")
    search_fields = ("username",)
    search_help_text = "A user's name, or what finds a session"
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = (section(None, "username session_shown what reads first_at last_at"),)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """By the reader, or by what was read."""
        term = search_term.strip()
        if not term:
            return queryset, False
        by_reader = queryset.filter(username=term)
        return (by_reader if by_reader.exists() else queryset.filter(session_id__in=session_ids(term))), False

    @admin.display(description="reader")
    def name(self, read: DataRead) -> str:
        """Who."""
        return read.username

    @admin.display(description="session")
    def session_shown(self, read: DataRead) -> SafeString:
        """Whose text; the session may be gone."""
        return session_link(read)
