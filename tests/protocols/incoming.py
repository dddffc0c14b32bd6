"""Requests and results as the protocols meet them, without a server."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np

from sessions_app.backends.base import Generation
from sessions_app.history.causes import AttachKind
from sessions_app.json_text import loads
from sessions_app.protocols.base import Incoming
from sessions_app.store.values import SessionSettings
from sessions_app.turns.values import Arrival, TurnResult

SESSION = UUID("0123456789abcdef0123456789abcdef")


def incoming(
    body: Any, *, policy: str = "tree", previous: Sequence[str] = (), headers: Mapping[str, str] | None = None
) -> Incoming:
    """A body (its JSON value, or its text) on its way in."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    arrival = Arrival(
        protocol="test",
        path="/v1/test",
        body=raw,
        request_hash=b"",
        headers=headers or {},
        query="",
        arrived_at=datetime.now(UTC),
        started=0.0,
    )
    return Incoming(arrival, loads(raw), settings(policy), previous)


def settings(policy: str) -> SessionSettings:
    """A session's settings."""
    return SessionSettings(
        id=SESSION,
        profile="default",
        history_policy=policy,
        on_nonlinear="reset",
        on_truncated="close",
        retry_policy="resample",
        message_matcher="strict",
        healing=True,
        harness=None,
        sampling={},
        max_context_tokens=None,
        max_turns=None,
        rollout_id=None,
        attempt_id=None,
        group_id=None,
    )


def result(
    message: Mapping[str, Any], *, finish: str = "stop", node: int | None = 3, **extras: Any
) -> TurnResult:
    """A generated reply of two tokens."""
    generation = Generation(
        ids=np.asarray([1, 2], dtype=np.int32),
        logprobs=np.asarray([-0.5, -0.5]),
        finish_reason=finish,
        raw_finish_reason=finish,
        message=None,
        response_id="chatcmpl-77",
        weight_version=None,
        prompt_tokens=None,
        completion_tokens=2,
        cached_tokens=0,
        engine_seconds=None,
        extras=extras,
    )
    reply = {
        "id": "chatcmpl-77",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }
    return TurnResult(
        session_id=SESSION,
        generation=generation,
        message=message,
        reply=reply,
        ill_formed=False,
        node_seq=node,
        parent_seq=None,
        kind=AttachKind.ROOT,
        cause=None,
        reused_tokens=0,
    )
