"""Sessions: the list, and the addresses of the pages below it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from sessions_app.admin.base import ReadOnlyAdmin, short
from sessions_app.admin.filters import (
    CauseFilter,
    DeletedFilter,
    HappenedFilter,
    HarnessFilter,
    MatcherFilter,
)
from sessions_app.admin.listing import SessionList
from sessions_app.admin.pages.actions import root_class_page, session_action_page
from sessions_app.admin.pages.case_page import case_page
from sessions_app.admin.pages.compare_page import compare_page
from sessions_app.admin.pages.diff_page import diff_page
from sessions_app.admin.pages.dump_page import dump_page
from sessions_app.admin.pages.export_page import export_chosen
from sessions_app.admin.pages.health_page import behind_page, health_page
from sessions_app.admin.pages.many_page import asked_for, many_page
from sessions_app.admin.pages.node_page import node_page, token_page
from sessions_app.admin.pages.reward_page import rewards_page
from sessions_app.admin.pages.samples_page import samples_page
from sessions_app.admin.pages.session_page import session_page
from sessions_app.admin.pages.what_if_page import replay_page, what_if_page
from sessions_app.admin.roles import EXPORT, may_operate
from sessions_app.admin.searching import sessions_named
from sessions_app.history.matchers.linear_form import uses_linear_form
from sessions_app.models import Session
from sessions_app.presentation.addresses import list_url
from sessions_app.presentation.markup import explained, link, prose

_CAUSES = 2
"""Causes of forks that a row names."""
_STATUS_TONES = {"open": "good", "finished": "plain", "closed": "plain", "idle": "warn"}
_STATUS_MEANINGS = {
    "open": "Serves turns.",
    "finished": "`finish` said so; serves no more turns.",
    "closed": "Closed by DELETE or an operator.",
    "idle": "Closed by the idle timeout.",
}


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """One row a session, newest first."""

    list_display = (
        "name",
        "status_shown",
        "harness_shown",
        "policy_shown",
        "turns",
        "forks_shown",
        "rollbacks_shown",
        "healed_shown",
        "odd_shown",
        "sampled",
        "unconfirmed",
        "created",
    )
    list_filter = (
        "status",
        "history_policy",
        MatcherFilter,
        HarnessFilter,
        CauseFilter,
        HappenedFilter,
        DeletedFilter,
        "profile",
        "created_at",
    )
    list_select_related = ("profile",)
    ordering = ("-created_at",)
    when_empty = (
        "manage.py demo makes some; every POST /sessions, and every /rollout/… address used, makes one."
    )
    sortable_by = (
        "created",
        "sampled",
        "turns",
        "forks_shown",
        "rollbacks_shown",
        "healed_shown",
    )
    search_fields = ("id",)
    actions = ("close_chosen", "reassemble_chosen", export_chosen)  # type: ignore[assignment]
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
            ("<str:session_id>/rewards/", "tito_rewards", rewards_page),
            ("<str:session_id>/dump/", "tito_dump", dump_page),
            ("do/<str:action>/", "tito_do_many", many_page),
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

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Operators act."""
        return may_operate(request.user)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """With what a list shows and no column holds, loaded for the rows of a page only."""
        return SessionList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """By whatever the operator has in hand."""
        return sessions_named(queryset, search_term) if search_term.strip() else queryset, False

    @admin.action(description="Close", permissions=["operate"])
    def close_chosen(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        """Asks first."""
        return asked_for(request, "close", chosen)

    @admin.action(description="Assemble the samples again", permissions=["operate"])
    def reassemble_chosen(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        """Asks first."""
        return asked_for(request, "reassemble", chosen)

    @admin.display(description="session")
    def name(self, session: Session) -> SafeString:
        """Id, and what the rollout is called."""
        told = " · ".join(part for part in (session.rollout_id, session.group_id) if part)
        shown = prose(told)
        return format_html('<code>{}</code> <small title="{}">{}</small>', short(session.id), told, shown)

    @admin.display(description="status")
    def status_shown(self, session: Session) -> SafeString:
        """Status; deleted sessions stay until retention."""
        if session.deleted_at is not None:
            return explained(
                "deleted", f"Hidden from the API since {session.deleted_at:%Y-%m-%d %H:%M}.", "bad"
            )
        return explained(session.status, _STATUS_MEANINGS[session.status], _STATUS_TONES[session.status])

    @admin.display(description="harness, model")
    def harness_shown(self, session: Session) -> SafeString:
        """Which agent program, served by which model."""
        harness = session.harness or "unknown"
        return format_html(
            '<span class="t-clip" title="{}">{}</span> <small>{}</small>',
            harness,
            prose(harness),
            session.profile.name,
        )

    @admin.display(description="policy")
    def policy_shown(self, session: Session) -> SafeString:
        """History policy and matcher."""
        canonical = uses_linear_form(session.history_policy, healing=session.healing)
        matcher = "linear form" if canonical else session.message_matcher
        return format_html("{} <small>{}</small>", session.history_policy, matcher)

    @admin.display(description="turns, leaves", ordering="next_seq")
    def turns(self, session: Any) -> SafeString:
        """Committed nodes; leaves: nodes without children, lineages, raw training samples."""
        leaves, roots = session.listed.leaves, session.listed.roots
        told = f"{leaves} {'leaf' if leaves == 1 else 'leaves'}" + (f", {roots} roots" if roots > 1 else "")
        number = link(list_url("node", session=session.id.hex), session.next_seq, "its nodes")
        return format_html("{} <small>{}</small>", number, told)

    @admin.display(description="forks by cause", ordering="forks")
    def forks_shown(self, session: Any) -> SafeString:
        """Forks, retries among them; the causes that were met most."""
        causes = list(session.listed.fork_causes.items())
        told = ", ".join(f"{number} {cause}" for cause, number in causes[:_CAUSES])
        more = f" +{len(causes) - _CAUSES}" if len(causes) > _CAUSES else ""
        number = _events(session, session.forks, kind__in="fork,retry")
        return format_html('{} <small title="{}">{}{}</small>', number, told, told, more)

    @admin.display(description="rollbacks", ordering="rollbacks")
    def rollbacks_shown(self, session: Session) -> SafeString:
        """Policy `rollback` only."""
        return _events(session, session.rollbacks, kind="rollback")

    @admin.display(description="healed", ordering="healed_turns")
    def healed_shown(self, session: Session) -> SafeString:
        """Turns fed with stored ids, and how many ids that were."""
        if not session.healed_turns:
            return format_html("{}", 0)
        return format_html(
            "{} <small>{} ids</small>", session.healed_turns, f"{session.healed_prefix_tokens:,}"
        )

    @admin.display(description="nonlinear, glue")
    def odd_shown(self, session: Session) -> SafeString:
        """The other two counters of the healer: non-linear turns, glue that stayed unresolved."""
        unresolved = _events(session, session.close_unresolved, cause="close_unresolved")
        return format_html("{} <small>glue {}</small>", session.nonlinear, unresolved)

    @admin.display(description="sampled", ordering="generated_tokens")
    def sampled(self, session: Session) -> str:
        """Ids sampled."""
        return f"{session.generated_tokens:,}"

    @admin.display(description="unconf.")
    def unconfirmed(self, session: Any) -> SafeString:
        """Replies that no later request contained; the last one of every path is among them."""
        url = list_url("record", session=session.id.hex, state__in="answered,committed")
        return link(url, session.listed.unconfirmed, "records whose reply no later request contained")

    @admin.display(description="created", ordering="created_at")
    def created(self, session: Session) -> SafeString:
        """When."""
        return format_html(
            "<small>{}</small> <small>{}</small>",
            f"{session.created_at:%Y-%m-%d}",
            f"{session.created_at:%H:%M:%S}",
        )

    def row_values(self, row: Any) -> dict[str, Any]:
        """The stored columns and the computed ones."""
        return super().row_values(row) | {
            "leaves": row.listed.leaves,
            "roots": row.listed.roots,
            "unconfirmed": row.listed.unconfirmed,
            "fork_causes": row.listed.fork_causes,
            "profile": row.profile.name,
        }


def _events(session: Session, number: int, **filters: str) -> SafeString:
    """A counter as a link to the events that it counts."""
    if not number:
        return format_html("{}", 0)
    return link(list_url("historyevent", session=session.id.hex, **filters), number, "the events")
