"""What became of each trace of a session: one object a trace, one entry a span. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer_export.spans.converting import Converted, TracedSession
from trainer_export.traces.better.report import Entry


def trace_reports(session: TracedSession, result: Converted) -> list[dict[str, Any]]:
    """Traces in order of their ids; our own calls without a span stand under the session's id."""
    traces: dict[str, list[Entry]] = {}
    for entry in result.report:
        traces.setdefault(result.traces.get(entry.span_id, ""), []).append(entry)
    return [
        {
            "session_id": session.session_id,
            "rollout_id": session.rollout_id,
            "attempt_id": session.attempt_id or None,
            "trace_id": trace_id,
            "error": result.error,
            "counts": dict(sorted(Counter(str(entry.use) for entry in entries).items())),
            "spans": [entry.to_json() for entry in _sorted(entries)],
        }
        for trace_id, entries in sorted(traces.items())
    ]


def _sorted(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.span_id, str(entry.use), entry.detail))
