"""Filters of the lists. Choices come from closed lists or from an index, never from reading a table."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from sessions_app.history.causes import Cause
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.models import HistoryEvent, Record

Choices = list[tuple[str, str]]

_MOST_HARNESSES = 200
_HARNESSES = """
    WITH RECURSIVE found AS (
        (SELECT harness FROM sessions_app_session WHERE harness IS NOT NULL ORDER BY harness LIMIT 1)
        UNION ALL
        SELECT (SELECT s.harness FROM sessions_app_session s WHERE s.harness > found.harness
                ORDER BY s.harness LIMIT 1)
        FROM found WHERE found.harness IS NOT NULL
    ) SELECT harness FROM found WHERE harness IS NOT NULL LIMIT %s
"""
"""Jumps from one value to the next in the index, so that it costs as many probes as there are harnesses."""


def harnesses() -> list[str]:
    """Harness names in use, in order."""
    with connection.cursor() as cursor:
        cursor.execute(_HARNESSES, [_MOST_HARNESSES])
        return [row[0] for row in cursor.fetchall()]


class ListFilter(ABC, admin.SimpleListFilter):
    """A filter by one value of the query string."""

    @abstractmethod
    def choices_in(self) -> Iterable[tuple[str, str]]:
        """Values and what they are called."""

    @abstractmethod
    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """The rows that have the value."""

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> Choices:
        """See Django."""
        return list(self.choices_in())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """See Django."""
        value = self.value()
        return queryset if value is None else self.narrowed(queryset, value)


class HarnessFilter(ListFilter):
    """By harness."""

    title = "harness"
    parameter_name = "harness"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [(name, name) for name in harnesses()]

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        return rows.filter(harness=value)


class MatcherFilter(ListFilter):
    """By message matcher: the built-in ones, and the one of the settings."""

    title = "message matcher"
    parameter_name = "matcher"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [(name, name) for name in dict.fromkeys([*BUILT_IN_MATCHERS, settings.TITO.message_matcher])]

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        return rows.filter(message_matcher=value)


class CauseFilter(ListFilter):
    """Sessions with an event of a cause."""

    title = "cause of an event"
    parameter_name = "cause"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [(cause, cause) for cause in Cause if cause is not Cause.FIRST_TURN]

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        return rows.filter(Exists(HistoryEvent.objects.filter(session=OuterRef("pk"), cause=value)))


class HappenedFilter(ListFilter):
    """Sessions in which something happened, by their counters and records."""

    title = "what happened"
    parameter_name = "happened"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [
            ("forks", "forked"),
            ("rollbacks", "rolled back"),
            ("retries", "retried"),
            ("resets", "reset"),
            ("nonlinear", "non-linear"),
            ("close_unresolved", "glue unresolved"),
            ("healed_turns", "healed"),
            ("unfinished", "a request without an end"),
        ]

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        if value == "unfinished":
            dangling = Record.objects.filter(session=OuterRef("pk"), state__in=("intent", "answered", "lost"))
            return rows.filter(Exists(dangling))
        known = {name for name, _ in self.choices_in()}
        return rows.filter(**{f"{value}__gt": 0}) if value in known else rows.none()


class DeletedFilter(ListFilter):
    """Deleted sessions are left out of a list that was not asked for one of them by a search."""

    title = "deleted"
    parameter_name = "deleted"

    def choices_in(self) -> Choices:
        """See ListFilter."""
        return [("too", "shown too"), ("only", "only these")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """See Django: no choice leaves them out."""
        for place, choice in enumerate(super().choices(changelist)):
            yield choice | {"display": "left out"} if place == 0 else choice

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """See Django."""
        if self.value() is None and not request.GET.get(SEARCH_VAR):
            return queryset.filter(deleted_at__isnull=True)
        return super().queryset(request, queryset)

    def narrowed(self, rows: QuerySet, value: str) -> QuerySet:
        """See ListFilter."""
        return rows.filter(deleted_at__isnull=False) if value == "only" else rows
