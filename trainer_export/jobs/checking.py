"""Files of an export read back: are they what the manifest says, and is every row what its shape says?"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sessions_app.json_text import loads
from trainer_export.jobs.destinations import Destination, destination_of
from trainer_export.jobs.job import Job
from trainer_export.jobs.publish import MANIFEST
from trainer_export.shapes import layout_of
from trainer_export.shapes.checking import problems_of
from trainer_export.writers.reading import read_rows


def check_export(job: Job) -> list[str]:
    """Everything that is wrong with a published export; empty for a good one."""
    destination = destination_of(job.destination)
    manifest = destination.read(MANIFEST)
    if manifest is None:
        return [f"{MANIFEST} is missing"]
    return [line for shard in loads(manifest)["shards"] for line in _check_shard(job, destination, shard)]


def _check_shard(job: Job, destination: Destination, shard: dict[str, Any]) -> Iterator[str]:
    name = shard["name"]
    content = destination.read(name)
    if content is None:
        yield f"{name} is missing"
        return
    if hashlib.sha256(content).hexdigest() != shard["sha256"]:
        yield f"{name} is not the file that was written"
        return
    shape = layout_of(job.shape)
    with TemporaryDirectory(prefix="tito-check-") as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        rows = read_rows(job.format, file, shape)
    for number, row in enumerate(rows):
        yield from (f"{name} row {number}: {problem}" for problem in problems_of(shape, row))
