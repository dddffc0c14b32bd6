"""The table: every number, and whether its target holds."""

from sessions_app.bench import report


def test_every_number_is_a_row_and_targets_are_judged() -> None:
    found = {
        "run": {"kind": "quick"},
        "cpu_ms_per_turn": {"1": 2.4, "64": 3.5},
        "pg_cpu_ms_per_turn": {"1": None},
        "ratio_vs_rerender_32k": 2.0,
        "rss_mb_over_turns": {"rss_mb": [100.0, 101.5]},
    }
    rows = {row.name: row for row in report.rows(found)}
    assert set(rows) == {
        "cpu_ms_per_turn/1",
        "cpu_ms_per_turn/64",
        "ratio_vs_rerender_32k",
        "rss_mb_over_turns/rss_mb",
    }
    assert rows["cpu_ms_per_turn/1"].target == "≤ 2.5  holds"
    assert rows["cpu_ms_per_turn/64"].target == "≤ 3  MISSED"
    assert rows["ratio_vs_rerender_32k"].target == "≥ 3  MISSED"
    assert rows["rss_mb_over_turns/rss_mb"].value == "100 101.5"


def test_a_bound_itself_holds() -> None:
    assert report.Target("x", 3).told(3).endswith("holds")
    assert report.Target("x", 3, least=True).told(3).endswith("holds")
