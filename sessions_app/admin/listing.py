"""Lists as the operator screens have them: what is counted and loaded for a page, and nothing beyond it."""

from typing import Any

from django.http import HttpRequest
from unfold.views import ChangeList

from sessions_app.insight.list_facts import ListFacts, load_list_facts


class OperatorList(ChangeList):
    """A page of rows."""

    def get_results(self, request: HttpRequest) -> None:
        """See Django. The title tells a count only of what was found by asking, and only exact ones."""
        super().get_results(request)
        asked = bool(self.query or self.has_active_filters)
        if not asked or self.paginator.is_estimate:
            self.full_result_count = self.result_count


class SessionList(OperatorList):
    """A page of sessions with what no column of theirs holds."""

    def get_results(self, request: HttpRequest) -> None:
        """See Django."""
        super().get_results(request)
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        facts = load_list_facts([row.pk for row in rows])
        for row in rows:
            row.listed = facts.get(row.pk, ListFacts())
        self.result_list = rows
