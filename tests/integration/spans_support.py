"""OTLP requests written down shortly, and what of them is stored."""

import asyncio
import gzip
import json
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from tests.client import Answer, Client
from trainer_export.models import Span, Trace, WaitingSpan
from trainer_export.spans.labelling import label_session
from trainer_export.spans.waiting import settle_session

PROTOBUF, JSON = "application/x-protobuf", "application/json"


def new_trace() -> int:
    """The id of a trace that nobody else has."""
    return uuid.uuid4().int


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """OTLP/JSON attributes."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def span(
    span_id: int, trace: int = 1, parent: int | None = None, name: str = "work", **fields: Any
) -> dict[str, Any]:
    """A span in OTLP/JSON; ids as numbers."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{span_id:016x}",
        **({} if parent is None else {"parentSpanId": f"{parent:016x}"}),
        "name": name,
        "startTimeUnixNano": str(fields.pop("start", span_id) * 1_000_000_000),
        "endTimeUnixNano": str(fields.pop("end", span_id + 1) * 1_000_000_000),
        "attributes": attributes(fields.pop("attributes", {})),
        **fields,
    }


def batch(*spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    """A request body; keyword `tito__rollout_id` is the resource attribute `tito.rollout_id`."""
    named = {key.replace("__", "."): value for key, value in resource.items()}
    return {
        "resourceSpans": [
            {"resource": {"attributes": attributes(named)}, "scopeSpans": [{"spans": list(spans)}]}
        ]
    }


def send(
    client: Client,
    body: Any,
    path: str = "/v1/traces",
    headers: dict[str, str] | None = None,
    *,
    zipped: bool = False,
) -> Answer:
    """One request in OTLP/JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": JSON, **(headers or {})}
    if zipped:
        raw, sent["content-encoding"] = gzip.compress(raw), "gzip"
    return client.call("POST", path, raw, sent)


def stored(trace: int) -> list[Span]:
    """Spans of a trace by sequence."""
    return list(Span.objects.filter(trace_id=f"{trace:032x}").order_by("sequence_id", "id"))


def settle(trace: int) -> None:
    """What a reader of each of a trace's sessions does first."""

    sessions = Trace.objects.filter(trace_id=f"{trace:032x}").values_list("session_id", flat=True)
    on_pool(*(partial(settle_session, session_id=session) for session in list(sessions)))


def make_ready(session: UUID) -> None:
    """Everything done that there is to do before the traces of a session are read."""
    on_pool(partial(settle_session, session_id=session), partial(label_session, session_id=session))


def on_pool(*works: Callable[[Database], Awaitable[object]]) -> None:
    """Run services on a pool of their own, one after the other."""

    async def run() -> None:
        db = Database(conninfo(), max_size=1)
        await db.open()
        try:
            for work in works:
                await work(db)
        finally:
            await db.close()

    asyncio.run(run())


def waiting(trace: int) -> list[str]:
    """Ids of the spans of a trace that wait for a session."""
    return list(
        WaitingSpan.objects.filter(trace_id=f"{trace:032x}").order_by("id").values_list("span_id", flat=True)
    )
