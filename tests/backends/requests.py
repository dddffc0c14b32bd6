"""Requests and backends for tests of engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from sessions_app.backends.base import Backend, GenerationRequest
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.http import HttpClient
from sessions_app.backends.routing import EnginePool

SESSION = "0123456789abcdef0123456789abcdef"
VOCAB_SIZE = 300
MESSAGES = [{"role": "user", "content": "hi"}]


def make_request(prompt: list[int] | None = None, **changes: Any) -> GenerationRequest:
    """A small chat request."""
    fields: dict[str, Any] = {
        "session_id": SESSION,
        "prompt_ids": np.asarray(prompt or [257, 104, 105, 258], dtype=np.int32),
        "body": {"messages": MESSAGES},
        "template_kwargs": {},
        "tools": None,
        "headers": {"content-type": "application/json"},
    }
    return GenerationRequest(**{**fields, **changes})


def make_dispatcher(*urls: str, timeout_s: float = 5.0, check_every_s: float = 5.0) -> Dispatcher:
    """A dispatcher towards these engines."""
    return Dispatcher(HttpClient(timeout_s), EnginePool(urls), check_every_s=check_every_s)


@asynccontextmanager
async def started(backend: Backend) -> AsyncIterator[Backend]:
    """The backend between start and close."""
    await backend.start()
    try:
        yield backend
    finally:
        await backend.close()
