"""Sessions: the list, and the addresses of the pages below it."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import ReadOnlyAdmin, short
from sessions_app.admin.filters import CauseFilter, HappenedFilter, HarnessFilter, MatcherFilter, harnesses
from sessions_app.admin.pages.actions import root_class_page, session_action_page
from sessions_app.admin.pages.case_page import case_page
from sessions_app.admin.pages.compare_page import compare_page
from sessions_app.admin.pages.diff_page import diff_page
from sessions_app.admin.pages.dump_page import dump_page
from sessions_app.admin.pages.export_page import export_chosen
from sessions_app.admin.pages.health_page import behind_page, health_page
from sessions_app.admin.pages.node_page import node_page, token_page
from sessions_app.admin.pages.samples_page import samples_page
from sessions_app.admin.pages.session_page import session_page
from sessions_app.admin.pages.what_if_page import replay_page, what_if_page
from sessions_app.admin.roles import EXPORT
from sessions_app.admin.searching import session_ids
from sessions_app.models import Node, Record, Session
from sessions_app.presentation.addresses import list_url
from sessions_app.presentation.markup import explained, link

_STATUS_TONES = {"open": "good", "finished": "plain", "closed": "plain", "idle": "warn"}
_STATUS_MEANINGS = {
    "open": "Serves turns.",
    "finished": "`finish` said so; serves no more turns.",
    "closed": "Closed by DELETE or an operator.",
    "idle": "Closed by the idle timeout.",
}


def _counted(rows: QuerySet, number: Any) -> Coalesce:
    """A count over a session's rows as a column of the session."""
    counted = rows.filter(session=OuterRef("pk")).order_by().values("session").annotate(n=number).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), Value(0))


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """One row a session, newest first."""

    list_display = (
        "name",
        "status_shown",
        "harness_shown",
        "policy_shown",
        "turns",
        "leaves",
        "forks_shown",
        "rollbacks_shown",
        "healed_shown",
        "sampled",
        "unconfirmed",
        "created_at",
    )
    list_filter = (
        "status",
        "history_policy",
        MatcherFilter,
        HarnessFilter,
        CauseFilter,
        HappenedFilter,
        "profile",
        "created_at",
    )
    list_select_related = ("profile",)
    ordering = ("-created_at",)
    sortable_by = (
        "created_at",
        "generated_tokens",
        "turns",
        "forks_shown",
        "rollbacks_shown",
        "healed_shown",
    )
    search_fields = ("id",)
    actions = (export_chosen,)
    search_help_text = "Id prefix, rollout, group, harness, response id, label=value"

    def get_urls(self) -> list[URLPattern]:
        """Pages over all sessions, and those of a session's nodes below the session."""
        node = "<str:session_id>/node/<int:seq>/"
        pages = [
            ("health/", "tito_health", health_page),
            ("health/sessions/", "tito_health_sessions", behind_page),
            ("compare/", "tito_compare", compare_page),
            ("what-if/", "tito_what_if", what_if_page),
            ("what-if/<str:job_id>/", "tito_replay", replay_page),
            ("<str:session_id>/samples/", "tito_samples", samples_page),
            ("<str:session_id>/dump/", "tito_dump", dump_page),
            ("<str:session_id>/do/<str:action>/", "tito_do", session_action_page),
            (node + "class/", "tito_root_class", root_class_page),
            (node, "tito_node", node_page),
            (node + "tokens/", "tito_tokens", token_page),
            (node + "diff/", "tito_diff", diff_page),
            (node + "case/", "tito_case", case_page),
        ]
        guarded = self.admin_site.admin_view
        return [path(route, guarded(view), name=name) for route, name, view in pages] + super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a session."""
        return session_page(request, object_id)

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Operators export."""
        return request.user.has_perm(EXPORT)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """With what a list shows and no column holds, computed for the rows of a page only."""
        rows = super().get_queryset(request)
        pending = Record.objects.filter(state__in=("answered", "committed"))
        return rows.annotate(
            leaf_count=_counted(Node.objects.all(), Count("*") - Count("parent_seq", distinct=True)),
            unconfirmed_count=_counted(pending, Count("*")),
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """By whatever the operator has in hand."""
        if not search_term.strip():
            return queryset, False
        if search_term.strip() in harnesses():  # as many rows as there are: their own index is in list order
            return queryset.filter(harness=search_term.strip()), False
        return queryset.filter(id__in=session_ids(search_term)), False

    @admin.display(description="session", ordering="created_at")
    def name(self, session: Session) -> SafeString:
        """Id, and what the rollout is called."""
        told = " · ".join(part for part in (session.rollout_id, session.group_id) if part)
        return format_html("<code>{}</code> {}", short(session.id), told)

    @admin.display(description="status")
    def status_shown(self, session: Session) -> SafeString:
        """Status; deleted sessions stay until retention."""
        if session.deleted_at is not None:
            return explained(
                "deleted", f"Hidden from the API since {session.deleted_at:%Y-%m-%d %H:%M}.", "bad"
            )
        return explained(session.status, _STATUS_MEANINGS[session.status], _STATUS_TONES[session.status])

    @admin.display(description="harness")
    def harness_shown(self, session: Session) -> str:
        """Which agent program."""
        return session.harness or "–"

    @admin.display(description="policy")
    def policy_shown(self, session: Session) -> SafeString:
        """History policy and matcher, under a profile."""
        matcher = "linear form" if session.history_policy == "linear" else session.message_matcher
        return format_html("{} <small>{} · {}</small>", session.history_policy, matcher, session.profile.name)

    @admin.display(description="turns", ordering="next_seq")
    def turns(self, session: Session) -> SafeString:
        """Committed nodes."""
        return link(list_url("node", session=session.id.hex), session.next_seq, "its nodes")

    @admin.display(description="leaves")
    def leaves(self, session: Any) -> int:
        """Nodes without children: raw training samples."""
        return session.leaf_count

    @admin.display(description="forks", ordering="forks")
    def forks_shown(self, session: Session) -> SafeString:
        """Forks, retries among them."""
        return _events(session, session.forks, kind__in="fork,retry")

    @admin.display(description="rollbacks", ordering="rollbacks")
    def rollbacks_shown(self, session: Session) -> SafeString:
        """Policy `rollback` only."""
        return _events(session, session.rollbacks, kind="rollback")

    @admin.display(description="healed", ordering="healed_turns")
    def healed_shown(self, session: Session) -> SafeString:
        """Turns fed with stored ids, and how many ids that were."""
        return format_html(
            '<span title="{} ids fed from storage">{}</span>',
            session.healed_prefix_tokens,
            session.healed_turns,
        )

    @admin.display(description="sampled", ordering="generated_tokens")
    def sampled(self, session: Session) -> str:
        """Ids sampled."""
        return f"{session.generated_tokens:,}"

    @admin.display(description="unconf.")
    def unconfirmed(self, session: Any) -> SafeString:
        """Replies that no later request contained; the last one of every path is among them."""
        url = list_url("record", session=session.id.hex, state__in="answered,committed")
        return link(url, session.unconfirmed_count, "records whose reply no later request contained")

    def row_values(self, row: Any) -> dict[str, Any]:
        """The stored columns and the computed ones."""
        return super().row_values(row) | {
            "leaves": row.leaf_count,
            "unconfirmed": row.unconfirmed_count,
            "profile": row.profile.name,
        }


def _events(session: Session, number: int, **filters: str) -> SafeString:
    """A counter as a link to the events that it counts."""
    if not number:
        return format_html("{}", 0)
    return link(list_url("historyevent", session=session.id.hex, **filters), number, "the events")
