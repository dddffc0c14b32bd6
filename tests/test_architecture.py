"""The house's rules: imports point one way, pure logic stays pure, one module writes the forest."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IO_AND_FRAMEWORKS = (
    "django", "rest_framework", "psycopg", "psycopg_pool", "aiohttp", "celery", "redis", "uvicorn",
    "sessions_app.models", "sessions_app.store", "sessions_app.turns", "sessions_app.api",
    "sessions_app.protocols", "sessions_app.backends", "sessions_app.admin",
)  # fmt: skip

FORBIDDEN: dict[str, tuple[str, ...]] = {
    "sessions_app/history": (*IO_AND_FRAMEWORKS, "sessions_app.rendering"),
    "sessions_app/rendering": (*IO_AND_FRAMEWORKS, "sessions_app.history"),
    "trainer_export/samples": IO_AND_FRAMEWORKS,
    "trainer_export/traces": IO_AND_FRAMEWORKS,
    "sessions_app/backends": (
        "rest_framework", "psycopg", "sessions_app.models", "sessions_app.store", "sessions_app.turns",
        "sessions_app.api", "sessions_app.protocols", "sessions_app.history",
    ),
    "sessions_app/store": (
        "rest_framework", "aiohttp", "sessions_app.models", "sessions_app.turns", "sessions_app.api",
        "sessions_app.protocols", "sessions_app.backends", "sessions_app.rendering",
    ),
    "sessions_app/turns": (
        "rest_framework", "sessions_app.models", "sessions_app.api", "sessions_app.protocols",
        "sessions_app.admin",
    ),
    "sessions_app/auditing": (
        "rest_framework", "aiohttp", "sessions_app.api", "sessions_app.protocols", "sessions_app.admin",
    ),
    "sessions_app/protocols": (
        "rest_framework", "psycopg", "sessions_app.models", "sessions_app.api", "sessions_app.store.pool",
        "sessions_app.store.commit", "sessions_app.store.sessions",
    ),
    "sessions_app/models": (
        "sessions_app.store", "sessions_app.turns", "sessions_app.api", "sessions_app.backends",
    ),
}  # fmt: skip
"""Folder: what nothing in it may import."""


def modules(folder: str) -> Iterator[Path]:
    """Python files below a folder, commands left out: they are edges wherever they stand."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        if "management" not in path.parts and "migrations" not in path.parts:
            yield path


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_point_one_way(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in imported(path)
        if any(name == banned or name.startswith(banned + ".") for banned in FORBIDDEN[folder])
    ]
    assert wrong == []


def test_one_module_writes_the_forest() -> None:
    writers = {
        str(path.relative_to(ROOT))
        for app in ("sessions_app", "trainer_export")
        for path in modules(app)
        if "INSERT INTO sessions_app_node" in path.read_text(encoding="utf-8")
    }
    assert writers == {"sessions_app/store/commit.py"}


def test_there_are_no_signals_and_no_json_columns() -> None:
    for path in modules("sessions_app"):
        text = path.read_text(encoding="utf-8")
        assert "django.dispatch" not in text, path
        assert "JSONField" not in text or "models" not in path.parts, path


def test_no_test_empties_the_database_the_others_share() -> None:
    emptying = "transaction" + "=True"
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert emptying not in path.read_text(encoding="utf-8"), path
