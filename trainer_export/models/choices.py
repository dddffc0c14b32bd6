"""Closed lists of exports as database choices."""

from collections.abc import Iterable

from trainer_export.jobs.values import FORMATS, SHAPES, HandoutState, JobState, ShardState

Choices = list[tuple[str, str]]


def _choices(values: Iterable[str]) -> Choices:
    return [(str(value), str(value)) for value in values]


JOB_STATES = _choices(JobState)
SHARD_STATES = _choices(ShardState)
HANDOUT_STATES = _choices(HandoutState)
FORMAT_CHOICES = _choices(FORMATS)
SHAPE_CHOICES = _choices(SHAPES)
HANDED_BY = _choices(["http", "export", "stream"])
JOB_SOURCES = _choices(["api", "command", "admin", "periodic"])
