"""What can go wrong with embedded services and children; the text is shown to the operator as it stands."""

from pathlib import Path

_TAIL_LINES = 15


class ServiceError(Exception):
    """A service or child cannot start or be stopped; says what to do where that is known."""


def with_log_tail(message: str, log: Path, offset: int = 0) -> ServiceError:
    """The error with the last lines written to a log since `offset`."""
    try:
        lines = log.read_bytes()[offset:].decode(errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        lines = []
    return ServiceError("\n".join([message, f"last lines of {log}:", *(f"  {line}" for line in lines)]))
