"""How many statements a page takes does not depend on how much it shows."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.seeding import Seeds
from tests.admin.test_pages import LISTS, node_url, session_url

_NESTING = ("SAVEPOINT", "RELEASE SAVEPOINT")
"""What a transaction begins and ends with where a test already runs in one."""


def statements(staff: Client, url: str) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert staff.get(url).status_code == 200
    return [one for query in captured.captured_queries if not (one := query["sql"]).startswith(_NESTING)]


@pytest.mark.parametrize("rows", LISTS)
def test_a_list_takes_a_handful_of_statements(staff: Client, seeds: Seeds, rows: str) -> None:
    asked = statements(staff, f"/admin/{rows}/")
    assert len(asked) <= 10, "\n".join(asked)  # two of them bound the time of the others


@pytest.mark.parametrize("rows", LISTS)
def test_no_list_counts_a_whole_table(staff: Client, seeds: Seeds, rows: str) -> None:
    for sql in statements(staff, f"/admin/{rows}/"):
        if "COUNT(*)" in sql and f'FROM "{rows.replace("/", "_")}"' in sql and "GROUP BY" not in sql:
            assert "LIMIT 10001" in sql, sql


@pytest.mark.parametrize(
    "of", [lambda seeds: session_url(seeds.busy), lambda seeds: node_url(seeds.busy, 12)]
)
def test_a_page_takes_as_many_statements_for_little_as_for_much(
    staff: Client, seeds: Seeds, of: Callable[[Seeds], str]
) -> None:
    large = of(seeds)
    small = large.replace(seeds.busy, seeds.rolled).replace("node/12", "node/1")
    for url in (large, small):  # the first page of a process also loads the renderer and assembles samples
        statements(staff, url)
    much, little = len(statements(staff, large)), len(statements(staff, small))
    assert abs(much - little) <= 1
    assert much <= 20


def test_counting_sessions_computes_nothing_else(staff: Client, seeds: Seeds) -> None:
    counting = [
        sql for sql in statements(staff, "/admin/sessions_app/session/") if "LIMIT 10001) subquery" in sql
    ]
    assert counting
    assert all("sessions_app_node" not in sql and "sessions_app_record" not in sql for sql in counting)


def test_the_list_of_sessions_loads_what_no_column_holds_at_once(staff: Client, seeds: Seeds) -> None:
    asked = statements(staff, "/admin/sessions_app/session/")
    assert sum("sessions_app_node" in sql for sql in asked) == 1


@pytest.mark.parametrize("rows", LISTS)
def test_cells_of_a_list_are_light(staff: Client, seeds: Seeds, rows: str) -> None:
    reply = staff.get(f"/admin/{rows}/").content.decode()
    table = reply[reply.find("<tbody") : reply.rfind("</tbody>")]
    cells = table.count("<td") + table.count("<th")
    assert len(table) <= 400 * cells, f"{len(table) // cells} bytes a cell"
    assert "before:content-" not in table


SESSIONS = "/admin/sessions_app/session/"
PAGES: dict[str, Callable[[Seeds], str]] = {
    "samples": lambda seeds: f"{SESSIONS}{seeds.busy}/samples/",
    "rewards": lambda seeds: f"{SESSIONS}{seeds.busy}/rewards/",
    "lanes": lambda seeds: node_url(seeds.busy, 12) + "diff/",
    "tokens": lambda seeds: node_url(seeds.busy, 12) + "tokens/?at=0",
    "case": lambda seeds: node_url(seeds.busy, 12) + "case/",
    "compare": lambda seeds: f"{SESSIONS}compare/?a={seeds.busy}:1&b={seeds.busy}:10",
    "health": lambda seeds: f"{SESSIONS}health/?range=24h&split=harness",
    "what-if": lambda seeds: f"{SESSIONS}what-if/",
}


@pytest.mark.parametrize("name", PAGES)
def test_every_other_page_takes_a_handful_of_statements(staff: Client, seeds: Seeds, name: str) -> None:
    statements(staff, PAGES[name](seeds))  # the first page of a session also assembles its samples
    asked = statements(staff, PAGES[name](seeds))
    assert len(asked) <= 16, "\n".join(asked)
