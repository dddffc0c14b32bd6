"""All measurements of one run, one after the other, on a fresh installation."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import psutil

from sessions_app.backends.demo.echo import plain_words
from sessions_app.bench import meters
from sessions_app.bench.installation import installed
from sessions_app.bench.measurements import (
    Measurement,
    contexts,
    exports,
    growth,
    in_flight,
    memory,
    rerender,
    samples,
    stalls,
    throughput,
    workers,
)
from sessions_app.bench.rig import Rig, rigged
from sessions_app.bench.sizes import Sizes
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer

Say = Callable[[str], None]

_MEASUREMENTS: dict[str, tuple[str, Measurement]] = {
    "turns": ("turns of 64 + 64 tokens", throughput.measure),
    "contexts": ("growing contexts", contexts.measure),
    "growth": ("200 turns, bytes on disk", growth.measure),
    "rerender": ("against rendering anew", rerender.measure),
    "samples": ("samples of 50k tokens", samples.measure),
    "exports": ("exports by size", exports.measure),
    "stalls": ("long first turns beside small ones", stalls.measure),
    "memory": ("memory over many turns", memory.measure),
    "workers": ("several web processes", workers.measure),
    "in-flight": ("generations in flight", in_flight.measure),
}
"""By name: what it says while it runs, and what runs. In this order."""
NAMES = tuple(_MEASUREMENTS)


async def measured(sizes: Sizes, name: str, say: Say, only: Sequence[str] = NAMES) -> dict[str, Any]:
    """The JSON of a run. `name`: the run's kind; `only`: the measurements to take."""
    started = perf_counter()
    words = plain_words(load_tokenizer(str(DEMO_MODEL)))
    say("starting database, engine and server")
    with installed() as installation:
        async with rigged(installation, words) as rig:
            found = await _all_of(rig, sizes, say, only)
            found["peak_rss_mb"] = round(meters.peak_rss_mb(rig.processes), 1)
    return {"run": _described(name, sizes, perf_counter() - started), **found}


async def _all_of(rig: Rig, sizes: Sizes, say: Say, only: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for title, measure in (_MEASUREMENTS[name] for name in NAMES if name in only):
        say(title)
        part: Mapping[str, Any] = await measure(rig, sizes)
        found |= part
    return found


def _described(name: str, sizes: Sizes, seconds: float) -> dict[str, Any]:
    """What to know of a run to read its figures."""
    return {
        "kind": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "processors": os.cpu_count(),
        "load_average": [round(each, 2) for each in psutil.getloadavg()],
        "python": platform.python_version(),
        "system": platform.platform(),
        "sizes": asdict(sizes),
    }
