"""The figures of a run as a table: each beside its target, where it has one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    name: str
    value: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure is to keep to. `path`: its place in the JSON, parts split by a slash."""

    path: str
    bound: float
    least: bool = False

    def told(self, value: float) -> str:
        """The bound and whether it holds."""
        holds = value >= self.bound if self.least else value <= self.bound
        return f"{'≥' if self.least else '≤'} {self.bound:g}  {'holds' if holds else 'MISSED'}"


TARGETS = (
    Target("cpu_ms_per_turn/1", 2.5),
    Target("cpu_ms_per_turn/64", 3.0),
    Target("pg_cpu_ms_per_turn/1", 1.3),
    Target("pg_cpu_ms_per_turn/16", 1.3),
    Target("pg_cpu_ms_per_turn/64", 1.3),
    Target("cpu_ms_by_context/50000", 5.0),
    Target("p99_ms/16", 120.0),
    Target("added_latency_turn200_over_turn5", 1.5),
    Target("sql_round_trips_per_turn", 4.0),
    Target("session_200_turns_100k_tokens/total", 3_000_000),
    Target("stored_over_whole_turns", 0.05),
    Target("ratio_vs_rerender_32k", 3.0, least=True),
    Target("ratio_vs_rerender_128k", 6.0, least=True),
    Target("in_flight_500/failed", 0),
    Target("in_flight_500/threads", 40),
    Target("in_flight_2000/failed", 0),
    Target("in_flight_2000/threads", 40),
    Target("samples_50k_ms", 100.0),
    Target("small_turns_p99_ratio", 2.0),
    Target("export_tokens_a_minute/60x10k", 20_000_000, least=True),
    Target("export_tokens_a_minute/10x100k", 20_000_000, least=True),
    Target("export_tokens_a_minute/40x100k", 20_000_000, least=True),
)
_BY_PATH = {target.path: target for target in TARGETS}


def table(found: Mapping[str, Any]) -> Table:
    """Everything that was measured."""
    made = Table(box=None, pad_edge=False)
    made.add_column("figure")
    made.add_column("measured", justify="right")
    made.add_column("target")
    for row in rows(found):
        made.add_row(row.name, row.value, row.target)
    return made


def rows(found: Mapping[str, Any], prefix: str = "") -> Iterator[Row]:
    """One row a number; the description of the run is left out."""
    for name, value in found.items():
        path = f"{prefix}{name}"
        if path == "run":
            continue
        if isinstance(value, Mapping):
            yield from rows(value, f"{path}/")
        elif isinstance(value, list):
            yield Row(path, " ".join(f"{each:g}" for each in value))
        elif value is not None:
            target = _BY_PATH.get(path)
            yield Row(path, f"{value:,.10g}", target.told(value) if target else "")
