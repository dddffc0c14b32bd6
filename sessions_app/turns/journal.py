"""What is told of every turn when it ends: a log line for those who collect logs (TITO_LOG_FORMAT=json), a
span for those who collect traces (TITO_OTLP_ENDPOINT). Ids and outcomes, no text.
"""

import logging
import time
from types import TracebackType
from typing import Self
from uuid import UUID

from sessions_app import errors
from sessions_app.telemetry.exporter import SpanSink
from sessions_app.telemetry.turn_span import Phase, TurnSpan, Value, parent_of
from sessions_app.turns.values import Arrival, TurnResult

logger = logging.getLogger(__name__)

Fields = dict[str, Value | None]


class TurnEntry:
    """One turn, told when it ends."""

    def __init__(self, session_id: UUID, arrival: Arrival, spans: SpanSink) -> None:
        self.result: TurnResult | None = None
        """What was answered."""
        self._session_id = session_id
        self._arrival = arrival
        self._spans = spans
        self._started = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spans.wanted:
            self._offer(error)
        if logger.isEnabledFor(logging.INFO):
            self._log(error)

    def _log(self, error: BaseException | None) -> None:
        fields: Fields = {
            "session": self._session_id.hex,
            "protocol": self._arrival.protocol,
            "ms": round((time.perf_counter() - self._started) * 1000, 1),
            **_outcome(self.result, error),
        }
        logger.info("turn", extra=_known(fields))

    def _offer(self, error: BaseException | None) -> None:
        parent = parent_of(self._arrival.headers.get("traceparent"))
        if parent is not None and not parent.sampled:
            return
        now, zero = time.perf_counter(), time.time_ns() - time.perf_counter_ns()
        outcome = _outcome(self.result, error)
        fields: Fields = {
            "session_id": self._session_id.hex,
            "protocol": self._arrival.protocol,
            **outcome,
            **_amounts(self.result),
        }
        self._spans.offer(
            TurnSpan(
                start_ns=zero + _ns(self._arrival.started),
                end_ns=zero + _ns(now),
                phases=tuple(
                    Phase(lap.stage, zero + _ns(lap.start), zero + _ns(lap.end))
                    for lap in self._arrival.stopwatch.laps
                ),
                attributes={f"tito.{name}": value for name, value in _known(fields).items()},
                failed=None if error is None else str(outcome.get("code") or outcome["error"]),
                parent=parent,
            )
        )


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _known(fields: Fields) -> dict[str, Value]:
    return {name: value for name, value in fields.items() if value is not None}


def _outcome(result: TurnResult | None, error: BaseException | None) -> Fields:
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


def _amounts(result: TurnResult | None) -> Fields:
    if result is None:
        return {}
    return {
        "generated_tokens": len(result.generation.ids),
        "finish_reason": result.generation.finish_reason,
        "replayed": result.replayed,
    }
