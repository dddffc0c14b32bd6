"""The body of a samples request. Odd arguments are the caller's mistake, never a half-used value."""

from dataclasses import dataclass
from typing import Any

from sessions_app.errors import InvalidArgument
from sessions_app.json_text import loads


@dataclass(frozen=True, slots=True)
class SamplesArguments:
    """What a trainer asks for."""

    max_seq_len: int | None = None
    """Most tokens of a sample; zero and negative values are ordinary limits that nothing fits."""
    metadata: Any = None
    """The driver's (agent) metadata; None = not given. Any JSON: judging it is the post-processor's business.
    """


def parse_arguments(body: bytes) -> SamplesArguments:
    """Reads the body; an empty one means no arguments. Raises InvalidJson and InvalidArgument."""
    given = loads(body) if body.strip() else {}
    if not isinstance(given, dict):
        raise InvalidArgument(f"samples arguments must be a JSON object, got {type(given).__name__}")
    limit = given.get("max_seq_len")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise InvalidArgument(f"max_seq_len must be an integer or null, got {type(limit).__name__}")
    return SamplesArguments(limit, given.get("metadata"))
