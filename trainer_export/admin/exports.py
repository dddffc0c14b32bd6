"""Exports: jobs with their shards, what was frozen as input, what was handed out."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, SessionRowAdmin, section
from sessions_app.admin.node import session_link
from sessions_app.presentation.addresses import node_url, session_url
from sessions_app.presentation.markup import explained, json_block, link, progress_bar, prose
from trainer_export.admin.diff_page import export_diff_page
from trainer_export.admin.export_page import export_page
from trainer_export.admin.pages import job_action_page
from trainer_export.models import ExportJob, ExportShard, FrozenSession, Handout, Sample

_TONES = {"done": "good", "running": "warn", "failed": "bad", "cancelled": "bad"}


def _job_link(job_id: Any) -> SafeString | str:
    if job_id is None:
        return "–"
    return link(reverse("admin:trainer_export_exportjob_change", args=[job_id]), job_id.hex[:12], job_id.hex)


@admin.register(ExportJob)
class ExportJobAdmin(ReadOnlyAdmin):
    """One row an export, newest first."""

    list_display = (
        "name",
        "state_shown",
        "progress",
        "format",
        "shape",
        "sessions",
        "rows",
        "tokens",
        "trained_tokens",
        "source",
        "created_at",
        "destination",
    )
    list_filter = ("state", "format", "shape", "source", "created_at")
    search_fields = ("id",)
    search_help_text = "Beginning of an export's id"
    when_empty = (
        "Choose sessions in their list and Export chosen sessions, or run manage.py export_samples, "
        "or POST /exports."
    )
    sortable_by = ("created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """With the shards that are written, counted for the rows of a page only."""
        done = ExportShard.objects.filter(job=OuterRef("pk"), state="done").order_by().values("job")
        counted = Coalesce(Subquery(done.annotate(n=Count("*")).values("n")), 0)
        return super().get_queryset(request).annotate(done_count=counted)

    def get_urls(self) -> list[URLPattern]:
        """What can be done with an export stands below it."""
        guarded = self.admin_site.admin_view
        return [
            path("diff/", guarded(export_diff_page), name="tito_export_diff"),
            path("<str:job_id>/do/<str:action>/", guarded(job_action_page), name="tito_export_do"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of an export."""
        return export_page(request, object_id)

    @admin.display(description="export")
    def name(self, job: ExportJob) -> str:
        """The leading digits of its id."""
        return job.id.hex[:12]

    @admin.display(description="state")
    def state_shown(self, job: ExportJob) -> SafeString:
        """How far it came."""
        asked = " (cancel asked for)" if job.cancel_requested and job.state in ("pending", "running") else ""
        return explained(job.state + asked, job.error_text or job.state, _TONES.get(job.state, ""))

    @admin.display(description="shards done")
    def progress(self, job: ExportJob) -> SafeString:
        """A bar with its numbers."""
        return progress_bar(job.done_count, job.shard_count)  # type: ignore[attr-defined]


@admin.register(ExportShard)
class ExportShardAdmin(ReadOnlyAdmin):
    """One row a file."""

    list_display = (
        "name",
        "job_shown",
        "state",
        "rows",
        "tokens",
        "trained_tokens",
        "size",
        "digest_shown",
        "attempts",
    )
    list_filter = ("state",)
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = (
        section(None, "job_shown number name state sessions attempts finished_at"),
        section("File", "digest size rows tokens trained_tokens"),
        section("Report", "error_text report_shown"),
    )

    @admin.display(description="export")
    def job_shown(self, shard: ExportShard) -> SafeString | str:
        """Its export."""
        return _job_link(shard.job_id)

    @admin.display(description="SHA-256")
    def digest_shown(self, shard: ExportShard) -> SafeString:
        """The beginning of its digest."""
        return format_html('<code title="{}">{}</code>', shard.digest, shard.digest[:12] or "–")

    @admin.display(description="report")
    def report_shown(self, shard: ExportShard) -> SafeString:
        """What became of its sessions."""
        return json_block(shard.report)


@admin.register(Sample)
class SampleAdmin(SessionRowAdmin):
    """One row a sample as it was handed out last."""

    list_display = (
        "name",
        "session_shown",
        "leaf_shown",
        "via",
        "status",
        "tokens",
        "trained_tokens",
        "reward",
        "stale_shown",
        "handed_at",
    )
    list_filter = ("via", "status", "handed_at", "stale_reason")
    fieldsets = (
        section(None, "name session_shown leaf_shown rollout_id group_id via job_shown handed_at"),
        section("Row", "status tokens trained_tokens reward next_seq"),
        section("Stale", "stale_at stale_reason"),
    )

    @admin.display(description="row")
    def name(self, sample: Sample) -> SafeString:
        """Session and leaf."""
        return format_html("<code>{}</code>", sample.sample_id[-16:])

    @admin.display(description="session")
    def session_shown(self, sample: Sample) -> SafeString:
        """Its session."""
        return session_link(sample)

    @admin.display(description="leaf")
    def leaf_shown(self, sample: Sample) -> SafeString:
        """Its leaf, coloured by what is trained."""
        url = f"{node_url(sample.session_id, sample.leaf_seq)}?signal=mask#tokens"
        return link(url, f"node {sample.leaf_seq}")

    @admin.display(description="export")
    def job_shown(self, sample: Sample) -> SafeString | str:
        """Its export."""
        return _job_link(sample.job_id)

    @admin.display(description="stale")
    def stale_shown(self, sample: Sample) -> SafeString:
        """Why it is no longer what would be handed out."""
        told = f"Since {sample.stale_at:%Y-%m-%d %H:%M}." if sample.stale_at else ""
        return explained(sample.stale_reason, told, "warn")


@admin.register(FrozenSession)
class FrozenSessionAdmin(ReadOnlyAdmin):
    """One row a session that an export or a handout froze."""

    list_display = ("name", "job_shown", "shard", "position", "unit_shown", "next_seq", "finished")
    list_filter = ("finished",)
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = (
        section(None, "name job_shown shard handout position unit_shown rollout_id"),
        section("As it stood", "next_seq active_seq finished healer"),
    )

    @admin.display(description="session")
    def name(self, frozen: FrozenSession) -> SafeString:
        """The session, which retention may have removed."""
        return link(session_url(frozen.session_id), frozen.session_id.hex[:12], frozen.session_id.hex)

    @admin.display(description="export")
    def job_shown(self, frozen: FrozenSession) -> SafeString | str:
        """Its export."""
        return _job_link(frozen.job_id)

    @admin.display(description="unit")
    def unit_shown(self, frozen: FrozenSession) -> SafeString:
        """Which rows must stay together."""
        return prose(frozen.unit)


@admin.register(Handout)
class HandoutAdmin(ReadOnlyAdmin):
    """One row a group or rollout on its way to a trainer."""

    list_display = (
        "name",
        "state",
        "late",
        "consumer",
        "deliveries",
        "completed_at",
        "leased_until",
        "settled_at",
    )
    list_filter = ("state", "late", "completed_at")
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = (
        section(None, "name group_id late state reason completed_at settled_at"),
        section("Delivery", "consumer deliveries lease leased_until"),
    )

    @admin.display(description="unit")
    def name(self, handout: Handout) -> SafeString:
        """Which group or rollout."""
        return prose(handout.unit)
