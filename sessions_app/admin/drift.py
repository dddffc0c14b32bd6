"""What the drift audit found."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section
from sessions_app.admin.node import session_link
from sessions_app.models import DriftFinding
from sessions_app.presentation.addresses import diff_url, node_url
from sessions_app.presentation.markup import explained, json_block, link
from sessions_app.presentation.words import DRIFT

_COUNTS = ("special_token_count", "special_token_type", "assistant_text", "non_assistant_text")


@admin.register(DriftFinding)
class DriftFindingAdmin(SessionRowAdmin):
    """One row an audited path, newest first."""

    list_display = (
        "name",
        "session_shown",
        "outcome_shown",
        "differences",
        "first_shown",
        "appears_shown",
        "lanes",
        "renderer",
        "audited_at",
    )
    list_filter = ("outcome", "audited_at")
    fieldsets = (
        section(None, "session_shown name outcome_shown reason lanes audited_at"),
        section(
            "Differences",
            "special_token_count special_token_type assistant_text non_assistant_text first_shown "
            "appears_shown template_mismatch retoken_mismatch others_mismatch details_shown",
        ),
        section("Compared", "renderer renderer_fingerprint template_fingerprint served_tokens fresh_tokens"),
    )

    @admin.display(description="path to")
    def name(self, finding: DriftFinding) -> str:
        """The node it ends at."""
        return f"node {finding.node_seq}"

    @admin.display(description="session")
    def session_shown(self, finding: DriftFinding) -> SafeString:
        """Its session."""
        return session_link(finding)

    @admin.display(description="outcome")
    def outcome_shown(self, finding: DriftFinding) -> SafeString:
        """What it comes to."""
        tone, meaning = DRIFT[finding.outcome]
        return explained(finding.outcome, finding.reason or meaning, tone)

    @admin.display(description="differences")
    def differences(self, finding: DriftFinding) -> str:
        """How many of each class."""
        found = [f"{getattr(finding, name)} {name}" for name in _COUNTS if getattr(finding, name)]
        return ", ".join(found) or "–"

    @admin.display(description="first differing id")
    def first_shown(self, finding: DriftFinding) -> SafeString | str:
        """Where it stands."""
        if finding.first_token is None:
            return "–"
        url = f"{node_url(finding.session_id, finding.node_seq)}?at={finding.first_token}#tokens"
        return link(url, finding.first_token)

    @admin.display(description="appears in")
    def appears_shown(self, finding: DriftFinding) -> SafeString | str:
        """The turn before which nothing differs."""
        if finding.appears_node_seq is None:
            return "–"
        return link(
            diff_url(finding.session_id, finding.appears_node_seq), f"node {finding.appears_node_seq}"
        )

    @admin.display(description="lanes")
    def lanes(self, finding: DriftFinding) -> SafeString:
        """The ids beside each other."""
        return link(diff_url(finding.session_id, finding.node_seq), "lanes")

    @admin.display(description="first differences")
    def details_shown(self, finding: DriftFinding) -> SafeString:
        """As the audit kept them."""
        return format_html("{}", json_block(finding.details))
