"""What every list and row of the operator screens shares: read-only, bounded counts, one query for a list,
JSON twins.

Invariant: no screen changes or deletes a row of the forest. What may be changed at all is its own admin's
exception.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib.admin import ShowFacets
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from sessions_app.admin.counting import BoundedCountPaginator
from sessions_app.admin.listing import OperatorList
from sessions_app.admin.searching import session_ids
from sessions_app.admin.twin import FORMAT, json_reply, wants_json
from sessions_app.auditing import reads
from sessions_app.insight.glyphs import spelled_out


class OperatorAdmin(ModelAdmin):
    """Lists of any size."""

    paginator = BoundedCountPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    list_fullwidth = True
    compressed_fields = True
    when_empty = ""
    """What a list says as long as there is no row: how rows come to be."""

    class Media:
        css = {"all": ["tito/operator.css"]}
        js = [Script("tito/operator.js", defer=True)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """How a list is loaded."""
        return OperatorList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, or its JSON twin."""
        if not wants_json(request):
            return self._noted(request, super().changelist_view(request, extra_context))
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = request.GET.copy()
        del query[FORMAT]
        request.GET = query  # type: ignore[assignment]
        reply = self._noted(request, super().changelist_view(request, extra_context))
        return json_reply(self._list_values(reply)) if isinstance(reply, TemplateResponse) else reply

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The row, or its JSON twin."""
        if not wants_json(request):
            reply = super().change_view(request, object_id, form_url, extra_context)
            if isinstance(reply, TemplateResponse) and reply.context_data is not None:
                self.note_reads(request, str(self.opts.verbose_name), [reply.context_data["original"]])
            return reply
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return json_reply({"error": f"no {self.opts.verbose_name} {object_id}"}, status=404)
        self.note_reads(request, str(self.opts.verbose_name), [row])
        return json_reply(self.row_values(row))

    def note_reads(self, request: HttpRequest, what: str, rows: Iterable[Any]) -> None:
        """Rows are shown to somebody: a row of no session is nobody's text."""

    def _noted(self, request: HttpRequest, reply: Any) -> Any:
        if isinstance(reply, TemplateResponse) and "cl" in (reply.context_data or {}):
            rows = reply.context_data["cl"].result_list  # type: ignore[index]
            self.note_reads(request, f"list of {self.opts.verbose_name_plural}", rows)
        return reply

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Titles take no markup: what a row is called is spelled out in them."""
        if context.get("original") is not None:
            context["original"] = _SpelledOut(context["original"])
            context["subtitle"] = str(context["original"])
        return super().render_change_form(request, context, *args, **kwargs)

    def _list_values(self, reply: TemplateResponse) -> dict[str, Any]:
        assert reply.context_data is not None
        shown = reply.context_data["cl"]
        return {
            "count": shown.result_count,
            "count_is_estimate": shown.paginator.is_estimate,
            "page": shown.page_num,
            "pages": {name: f"{url}&{FORMAT}=json" for name, url in shown.links.items()},
            "gave_up": shown.gave_up,
            "rows": [self.row_values(row) for row in shown.result_list],
        }

    def row_values(self, row: Model) -> dict[str, Any]:
        """A row of the list as JSON values."""
        return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


class ReadOnlyAdmin(OperatorAdmin):
    """Rows that are looked at and never touched."""

    actions: Sequence[Callable[..., HttpResponse | None]] | None = None

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """All of them."""
        return self.get_fields(request, obj)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """What the fieldsets name."""
        fields: list[str] = []
        for _, options in self.fieldsets or ():
            fields += options["fields"]
        return fields or super().get_fields(request, obj)


class SessionRowAdmin(ReadOnlyAdmin):
    """Rows that belong to a session: found by what finds the session."""

    search_help_text = "Session: id prefix, rollout, group, harness, response id, label=value"
    search_fields = ("session_id",)
    ordering = ("-id",)
    sortable_by = ()

    def note_reads(self, request: HttpRequest, what: str, rows: Iterable[Any]) -> None:
        """Whose text they are, on record."""
        reads.note(request.user.get_username(), what, (row.session_id for row in rows))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Rows of the sessions that the term names."""
        if not search_term.strip():
            return queryset, False
        return queryset.filter(session_id__in=session_ids(search_term)), False


class _SpelledOut:
    """A row whose name hides nothing."""

    def __init__(self, row: Model) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    def __str__(self) -> str:
        return spelled_out(str(self._row))


def section(title: str | None, fields: str) -> tuple[str | None, dict[str, Any]]:
    """A fieldset; the fields' names with blanks between them."""
    return title, {"fields": tuple(fields.split())}


def short(session_id: UUID) -> str:
    """The leading digits of an id, enough to tell rows of a page apart and to search by."""
    return session_id.hex[:12]
