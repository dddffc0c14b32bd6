"""The analytics views: every column commented, numbers that agree with the rows, examples that run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, ProgrammingError, connection, transaction

from sessions_app.models import Node, Record, Session
from tests.admin.seeding import Seeds

DOCS = Path(__file__).parents[2] / "docs"
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


def documented() -> list[tuple[str, list[str]]]:
    """The queries of the document, and the columns of the output that stands below each."""
    text = (DOCS / "analytics.md").read_text(encoding="utf-8")
    found = re.findall(r"```sql\n(.*?)```\n+```text\n(.*?)\n", text, flags=re.DOTALL)
    return [(query, header.split()) for query, header in found]


def test_five_questions_are_documented() -> None:
    assert len(documented()) == 5


@pytest.mark.parametrize(("query", "columns"), documented())
def test_the_documented_queries_give_what_is_documented(seeds: Seeds, query: str, columns: list[str]) -> None:
    found = rows(query.replace("%", "%%"))
    assert [list(row) for row in found[:1]] == [columns]


def test_the_role_of_analysts_reads_the_views_and_nothing_else(seeds: Seeds) -> None:
    script = (DOCS / "analytics-role.sql").read_text(encoding="utf-8")
    for name, value in ((':"role"', '"analyst_of_a_test"'), (":password", "'secret'")):
        script = script.replace(name, value)
    with connection.cursor() as cursor:
        cursor.execute("\n".join(line for line in script.splitlines() if not line.startswith("--")))
        cursor.execute("GRANT analyst_of_a_test TO CURRENT_USER")
        cursor.execute("SET LOCAL ROLE analyst_of_a_test")
        for view in VIEWS:
            cursor.execute(f"SELECT count(*) FROM {view}")
        for table in ("sessions_app_message", "sessions_app_session", "sessions_app_record", "auth_user"):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                cursor.execute(f"SELECT count(*) FROM {table}")
        with pytest.raises(DatabaseError), transaction.atomic():
            cursor.execute("DELETE FROM sessions_app_session")
        cursor.execute("RESET ROLE")
