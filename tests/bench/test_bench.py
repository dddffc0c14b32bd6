"""A whole benchmark, as small as can be: it starts everything, measures everything, leaves nothing."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from sessions_app.bench import report
from sessions_app.bench.load import Load
from sessions_app.bench.measurements import growth, samples, throughput
from sessions_app.bench.session import measured
from sessions_app.bench.sizes import DEFAULT, FULL, QUICK, Sizes

pytestmark = pytest.mark.slow

TINY = Sizes(
    concurrency={1: 3, 2: 2},
    contexts=(500,),
    context_turns=2,
    rerender_contexts=(1_000,),
    rerender_turns=1,
    growth_sessions=1,
    in_flight=(),
    samples_sessions=1,
    stall_s=0.3,
    soak_turns=0,
    workers=(),
    exports=((2, 1_000), (1, 4_000)),
)
NAMED = (
    "cpu_ms_per_turn",
    "pg_cpu_ms_per_turn",
    "turns_per_second",
    "p50_ms",
    "p99_ms",
    "added_latency_turn200_over_turn5",
    "bytes_per_turn",
    "sql_round_trips_per_turn",
    "peak_rss_mb",
    "samples_50k_ms",
    "export_tokens_a_minute",
    "export_peak_mb",
)
"""Keys that others read."""
STAGES = {"parse", "match", "load", "assemble", "intent", "engine", "commit", "reply"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    said: list[str] = []
    before = homes()
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(throughput, "_WARM_UP", Load(agents=1, turns=2))
        smaller.setattr(growth, "_DISK_LOAD", Load(agents=4, turns=25))
        smaller.setattr(samples, "_TURNS", 5)
        figures = asyncio.run(measured(TINY, "tiny", said.append))
    assert len(said) > 5
    assert homes() == before
    assert not [each for each in psutil.Process().children(recursive=True) if "serve" in each.cmdline()]
    return figures


def homes() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("tito-bench-*"))


def test_every_named_figure_is_there(found: dict[str, Any]) -> None:
    assert set(NAMED) <= set(found)
    assert set(found["p99_ms"]) == {"1", "2"}
    assert "ratio_vs_rerender_1k" in found
    assert json.loads(json.dumps(found))["added_latency_ms"] == found["added_latency_ms"]
    assert len(list(report.rows(found))) > 30


def test_counts_are_what_they_are_on_any_machine(found: dict[str, Any]) -> None:
    assert found["sql_round_trips_per_turn"] == 3
    assert found["session_200_turns_100k_tokens"]["total"] <= 3_000_000
    assert found["stored_over_whole_turns"] <= 0.05
    assert 0 < found["bytes_per_turn"] < 8_000


def test_exports_are_told_by_size(found: dict[str, Any]) -> None:
    assert set(found["export_tokens_a_minute"]) == set(found["export_peak_mb"]) == {"2x1k", "1x4k"}
    for size, peak in found["export_peak_mb"].items():
        assert peak >= found["export_before_mb"][size] > 0
    assert all(figure > 0 for figure in found["export_tokens_a_minute"].values())


def test_latency_is_split_into_stages(found: dict[str, Any]) -> None:
    for stages in found["added_latency_ms"].values():
        assert stages.keys() >= STAGES
        assert sum(stages[name] for name in STAGES) <= stages["total"] * 1.5


def test_sizes_hold_what_the_targets_need() -> None:
    assert {1, 16, 64} <= set(QUICK.concurrency)
    assert {32_000, 128_000} <= set(QUICK.rerender_contexts)
    assert {500, 2_000} <= set(DEFAULT.in_flight)
    assert len({sessions * tokens for sessions, tokens in QUICK.exports}) == 3
    assert set(QUICK.exports) <= set(DEFAULT.exports) <= set(FULL.exports)
    assert set(FULL.concurrency) == {1, 16, 64, 256}
    assert min(FULL.contexts) == 1_000
    assert max(FULL.contexts) == 128_000


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(Path(__file__).parents[2] / "manage.py"), "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=60)


def test_a_wrong_folder_is_one_clear_line() -> None:
    ended = bench("--json", "/no/such/f")
    assert ended.returncode != 0
    assert "there is no folder /no/such" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrong_name_lists_the_measurements() -> None:
    ended = bench("--only", "turns", "speed")
    assert ended.returncode != 0
    assert "there is no speed; choose from turns, contexts" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_only_what_is_asked_for_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "_WARM_UP", Load(agents=1, turns=2))
    told = asyncio.run(measured(TINY, "tiny", lambda _: None, ("turns",)))
    assert "cpu_ms_per_turn" in told
    assert not told.keys() & {"samples_50k_ms", "bytes_per_turn"}
