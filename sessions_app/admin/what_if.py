"""Replays that were asked for."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, section
from sessions_app.auditing import reads
from sessions_app.insight.what_if.report import compared
from sessions_app.models import WhatIfJob
from sessions_app.presentation.addresses import what_if_url
from sessions_app.presentation.markup import explained, json_block, link, text_block
from sessions_app.presentation.words import JOB_TONES


@admin.register(WhatIfJob)
class WhatIfJobAdmin(ReadOnlyAdmin):
    """One row a replay, newest first."""

    list_display = ("name", "state_shown", "progress", "changes", "asked_by", "created_at", "finished_at")
    list_filter = ("state", "created_at")
    sortable_by = ()
    fieldsets = (
        section(None, "name state_shown progress asked_by created_at finished_at error_shown"),
        section("Asked for", "wanted_shown"),
        section("Report", "report_shown"),
    )

    def note_reads(self, request: HttpRequest, what: str, rows: Iterable[Any]) -> None:
        """A report quotes the sessions that it compares."""
        for job in rows:
            if job.report:
                reads.note(request.user.get_username(), "replay", compared(json.loads(job.report)))

    @admin.display(description="replay")
    def name(self, job: WhatIfJob) -> SafeString:
        """Leads to its report."""
        return link(what_if_url(job.pk), job.pk.hex[:12], "its report")

    @admin.display(description="state")
    def state_shown(self, job: WhatIfJob) -> SafeString:
        """How far it came."""
        return explained(job.state, job.error_text or job.state, JOB_TONES[job.state])

    @admin.display(description="sessions")
    def progress(self, job: WhatIfJob) -> str:
        """Done and in all."""
        return f"{job.done} of {'?' if job.total is None else job.total}"

    @admin.display(description="changes")
    def changes(self, job: WhatIfJob) -> str:
        """What is changed."""
        changed = json.loads(job.wanted)["changes"]
        return (
            ", ".join(f"{name} = {value}" for name, value in changed.items() if value is not None)
            or "nothing"
        )

    @admin.display(description="asked for")
    def wanted_shown(self, job: WhatIfJob) -> SafeString:
        """JSON object."""
        return json_block(job.wanted)

    @admin.display(description="error")
    def error_shown(self, job: WhatIfJob) -> SafeString:
        """What it ran into."""
        return text_block(job.error_text) if job.error_text else format_html("{}", "–")

    @admin.display(description="report")
    def report_shown(self, job: WhatIfJob) -> SafeString:
        """JSON object."""
        return json_block(job.report)
