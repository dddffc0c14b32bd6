"""Web processes that serve now."""

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, section
from sessions_app.models import ProcessLease
from sessions_app.presentation.markup import explained


@admin.register(ProcessLease)
class ProcessLeaseAdmin(ReadOnlyAdmin):
    """One row a process. What has run out is given up, and its row removed, within seconds."""

    list_display = ("name", "lives", "host", "pid", "since", "renewed_at", "expires_at")
    sortable_by = ()
    fieldsets = (section(None, "process lives host pid since renewed_at expires_at"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """By the database's clock."""
        lives = ExpressionWrapper(Q(expires_at__gt=Now()), output_field=BooleanField())
        return super().get_queryset(request).annotate(lives=lives)

    @admin.display(description="process")
    def name(self, lease: ProcessLease) -> str:
        """As it stands in records."""
        return lease.process

    @admin.display(description="lease")
    def lives(self, lease: ProcessLease) -> SafeString:
        """Whether it was renewed in time."""
        if lease.lives:  # type: ignore[attr-defined]
            return explained("live", "Renewed in time", "good")
        return explained("expired", "Dead, or cut off from the database: its turns are given up", "bad")
