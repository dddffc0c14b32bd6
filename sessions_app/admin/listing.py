"""Lists as the operator screens have them: what is counted and loaded for a page, and nothing beyond it."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

from sessions_app.admin import bounded
from sessions_app.admin.bounded import TooLong, time_bound
from sessions_app.admin.paging import AFTER, BEFORE, PLACES, Key, Page, asked_place, keys_of, read_page
from sessions_app.insight.list_facts import ListFacts, load_list_facts

_NO_PLACE = "The address names no place in this list, whose pages have no numbers. This is the first page."


class OperatorList(ChangeList):
    """A page of rows. Long lists are paged by place, short ones by number."""

    longest_s = bounded.LONGEST_S
    gave_up = False
    """Whether the rows were not read, because that took too long."""
    links: dict[str, str]
    """Neighbouring pages of a long list: first, previous, next, last, as far as there are any."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str] | None = None) -> QuerySet:
        """See Django, to which places are no filters."""
        for name in PLACES:
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        return super().get_queryset(request, exclude_parameters)

    def get_results(self, request: HttpRequest) -> None:
        """See Django. The title tells a count only of what was found by asking, and only exact ones."""
        self.links = {}
        try:
            with time_bound():
                self._read(request)
        except TooLong:
            self._give_up(request)
        asked = bool(self.query or self.has_active_filters)
        if not asked or self.paginator.is_estimate:
            self.full_result_count = self.result_count  # type: ignore[has-type]

    def _read(self, request: HttpRequest) -> None:
        keys = keys_of(self.model, self.queryset.query.order_by)
        self.paginator = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        by_place = any(name in request.GET for name in PLACES) or self.paginator.is_estimate
        if keys is None or not by_place:
            super().get_results(request)
            self.result_list = list(self.result_list)  # type: ignore[has-type]
        else:
            self._read_place(request, keys)

    def _read_place(self, request: HttpRequest, keys: list[Key]) -> None:
        try:
            place = asked_place(request.GET, keys)
            if place is None and self.page_num != 1:
                raise ValueError(PAGE_VAR)
        except ValueError:
            messages.warning(request, _NO_PLACE)
            place = None
        page = read_page(self.queryset, keys, place, self.list_per_page)
        self.links = self._links(page)
        self._hold(page.rows, self.paginator.count)
        self.multi_page = True

    def _links(self, page: Page) -> dict[str, str]:
        links: dict[str, str] = {}
        if page.before is not None:
            links |= {"first": self.get_query_string(), "previous": self._at(BEFORE, page.before)}
        if page.after is not None:
            links |= {"next": self._at(AFTER, page.after), "last": self._at(BEFORE, "")}
        return links

    def _at(self, name: str, place: str) -> str:
        return self.get_query_string({name: place})

    def _give_up(self, request: HttpRequest) -> None:
        self.gave_up = True
        self.paginator = self.model_admin.get_paginator(request, self.queryset.none(), self.list_per_page)
        self._hold([], 0)

    def _hold(self, rows: list[Any], count: int) -> None:
        """What Django's own way of loading a page would leave behind."""
        self.result_list = rows
        self.result_count = self.full_result_count = count
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False


class SessionList(OperatorList):
    """A page of sessions with what no column of theirs holds."""

    def _read(self, request: HttpRequest) -> None:
        super()._read(request)
        facts = load_list_facts([row.pk for row in self.result_list])
        for row in self.result_list:
            row.listed = facts.get(row.pk, ListFacts())
