"""Counting rows of tables that may hold millions: exact up to a bound, the planner's estimate above it."""

import json

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

EXACT_UP_TO = 10_000


class BoundedCountPaginator(Paginator):
    """Never counts a whole table."""

    template_name = "admin/tito/pagination.html"

    @cached_property
    def bounded_count(self) -> int:
        """Rows, or one more than EXACT_UP_TO where there are more."""
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by().values("pk")[: EXACT_UP_TO + 1].count()

    @property
    def is_estimate(self) -> bool:
        """Whether `count` is what the planner expects."""
        return self.bounded_count > EXACT_UP_TO

    @cached_property
    def count(self) -> int:
        """Rows in the list."""
        if not self.is_estimate:
            return self.bounded_count
        assert isinstance(self.object_list, QuerySet)
        return max(self.bounded_count, estimated_rows(self.object_list))


def estimated_rows(rows: QuerySet) -> int:
    """How many rows the database's planner expects of a query. Does not run it."""
    plan = json.loads(rows.order_by().explain(format="json").removesuffix("\n"))
    return int(plan[0]["Plan"]["Plan Rows"])
