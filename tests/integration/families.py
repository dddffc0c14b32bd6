"""A server that renders by a family's rule, on the small tokenizer of the recorded exchanges."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.harness import running_server

CONFIG = Path(__file__).parent.parent / "vectors" / "history" / "config"


@contextmanager
def family_server(
    family: str, template: str = "chatml", **settings: str
) -> Iterator[tuple[Client, FakeEngine]]:
    """`template:FAMILY` over one of the recorded templates."""
    environment = {
        "TITO_MODEL": str(CONFIG / "tokenizer"),
        "TITO_CHAT_TEMPLATE": str(CONFIG / f"{template}.jinja"),
        "TITO_RENDERER": f"template:{family}",
        "TITO_BACKEND": "sglang",
        **settings,
    }
    with FakeEngine() as engine, running_server({**environment, "TITO_BACKEND_URL": engine.url}) as url:
        yield Client(url), engine
