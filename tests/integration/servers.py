"""Environments of servers under test that several files share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.engine import FakeEngine
from tests.harness import running_server

CONFIG = Path(__file__).parent.parent / "vectors" / "history" / "config"


def toy_environment(engine: FakeEngine, backend: str = "sglang") -> dict[str, str]:
    """ChatML over single bytes, answered by a scripted engine."""
    return {
        "TITO_MODEL": str(CONFIG / "tokenizer"),
        "TITO_CHAT_TEMPLATE": str(CONFIG / "chatml.jinja"),
        "TITO_RENDERER": "template",
        "TITO_BACKEND": backend,
        "TITO_BACKEND_URL": engine.url,
    }


@contextmanager
def shared_server(blocker: Any, environment: dict[str, str]) -> Iterator[str]:
    """A server for the tests of a class, one at a time. The caller's fixture also names `django_db_setup`."""
    with blocker.unblock(), running_server(environment) as url:
        yield url
