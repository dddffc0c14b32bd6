"""Environments of servers under test that several files share."""

from pathlib import Path

from tests.fakes.engine import FakeEngine

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
