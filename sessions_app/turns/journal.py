"""A log line for every turn, for those who collect logs (TITO_LOG_FORMAT=json): ids and outcomes, no text."""

import logging
import time
from types import TracebackType
from typing import Self
from uuid import UUID

from sessions_app import errors
from sessions_app.turns.values import TurnResult

logger = logging.getLogger(__name__)


class TurnEntry:
    """The line of one turn, written when it ends."""

    def __init__(self, session_id: UUID, protocol: str) -> None:
        self.result: TurnResult | None = None
        """What was answered."""
        self._session_id = session_id
        self._protocol = protocol
        self._started = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        fields = {
            "session": self._session_id.hex,
            "protocol": self._protocol,
            "ms": round((time.perf_counter() - self._started) * 1000, 1),
            **_outcome(self.result, error),
        }
        logger.info("turn", extra={name: value for name, value in fields.items() if value is not None})


def _outcome(result: TurnResult | None, error: BaseException | None) -> dict[str, object]:
    if isinstance(error, errors.TitoError):
        return {"outcome": "failed", "status": error.status, "code": error.code}
    if result is None:
        return {"outcome": "ended", "error": type(error).__name__}
    return {
        "outcome": "answered" if result.late is None else "late",
        "node": result.node_seq,
        "parent": result.parent_seq,
        "attach": result.kind,
        "cause": result.cause,
        "reused_tokens": result.reused_tokens,
        "reason": result.late,
    }
