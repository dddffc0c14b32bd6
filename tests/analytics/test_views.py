"""The analytics views: every column commented, numbers that agree with the rows, examples that run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from sessions_app.models import Node, Record, Session
from tests.admin.seeding import Seeds

VIEWS = ["analytics_turn", "analytics_session", "analytics_fork_rate_hourly", "analytics_redundancy"]


def rows(query: str, *params: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        assert cursor.description is not None
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("view", VIEWS)
def test_the_view_and_each_column_have_a_comment(seeds: Seeds, view: str) -> None:
    told = rows(
        "SELECT attname, col_description(attrelid, attnum) AS told FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0",
        view,
    )
    assert told
    assert [row["attname"] for row in told if not row["told"]] == []
    assert rows("SELECT obj_description(%s::regclass) AS told", view)[0]["told"]


def test_a_turn_a_record(seeds: Seeds) -> None:
    found = rows("SELECT * FROM analytics_turn WHERE session_id = %s ORDER BY record_id", seeds.failed)
    assert [row["record_id"] for row in found] == list(
        Record.objects.filter(session_id=seeds.failed).order_by("id").values_list("id", flat=True)
    )
    assert {row["outcome"] for row in found} == {"committed", "refused", "upstream_error"}
    assert {row["harness"] for row in found} == {"unlucky"}


def test_a_session_is_summed_up_as_it_is(seeds: Seeds) -> None:
    found = rows("SELECT * FROM analytics_session WHERE session_id = %s", seeds.busy)[0]
    nodes = list(Node.objects.filter(session_id=seeds.busy).values("seq", "parent_seq", "finish_reason"))
    inner = {node["parent_seq"] for node in nodes}
    session = Session.objects.get(pk=seeds.busy)
    assert found["nodes"] == len(nodes)
    assert found["leaves"] == sum(node["seq"] not in inner for node in nodes)
    assert found["roots"] == sum(node["parent_seq"] is None for node in nodes)
    assert found["truncated_turns"] == sum(node["finish_reason"] == "length" for node in nodes)
    assert found["tokens_generated"] == session.generated_tokens
    assert found["tokens_trained"] is None
    assert sum(json.loads(found["forks_by_cause"]).values()) == session.forks


def test_rates_of_all_causes_add_up(seeds: Seeds) -> None:
    summed = "SELECT sum(forks) AS forks, min(turns) AS turns, sum(fork_rate) AS rate"
    grouped = "FROM analytics_fork_rate_hourly GROUP BY hour, harness, model, policy, matcher"
    for row in rows(f"{summed} {grouped}"):
        assert row["rate"] == pytest.approx(float(row["forks"]) / row["turns"])


def test_redundancy_counts_every_context(seeds: Seeds) -> None:
    found = rows("SELECT * FROM analytics_redundancy WHERE session_id = %s", seeds.plain)[0]
    totals = list(
        Node.objects.filter(session_id=seeds.plain).order_by("seq").values_list("total_tokens", flat=True)
    )
    assert found["tokens_row_per_turn"] == sum(totals)
    assert found["tokens_row_per_leaf"] == totals[-1] == found["tokens_stored"]
    assert found["redundancy"] == pytest.approx(sum(totals) / totals[-1])
    assert rows("SELECT * FROM analytics_redundancy WHERE session_id = %s", seeds.empty) == []


def test_the_documented_queries_run(seeds: Seeds) -> None:
    text = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text(encoding="utf-8")
    queries = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
    assert len(queries) >= 5
    for query in queries:
        rows(query.replace("%", "%%"))
