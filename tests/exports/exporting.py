"""What tests of exports have in common: sessions to export, the command, and files read back."""

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says
from trainer_export.shapes import SHAPES, Shape
from trainer_export.shapes.base import Row
from trainer_export.writers.reading import read_rows


def linear(client: Client, engine: FakeEngine, turns: int = 2, **options: Any) -> str:
    """A session of some plain turns."""
    session, messages = client.create(**options), [user("hello")]
    for _ in range(turns):
        engine.script(Reply([100, 2], message=says("ab")))
        messages = [*messages, reply_of(client.chat(session, messages)), user("ok")]
    return session


def export(out: Path | str, *arguments: str, sessions: list[str] | None = None) -> dict[str, Any]:
    """Runs the command; its report."""
    written = io.StringIO()
    given = [argument for session in sessions or [] for argument in ("--session", session)]
    call_command("export_samples", "--out", str(out), *given, *arguments, stdout=written)
    return json.loads(written.getvalue())


def shards(out: Path, format: str = "parquet") -> list[Path]:
    return sorted(out.glob(f"*.{format}"))


def rows(out: Path, shape: Shape = SHAPES["native"], format: str = "parquet") -> list[Row]:
    """All rows of an export in order."""
    return [row for file in shards(out, format) for row in read_rows(format, file, shape)]


def visible(out: Path) -> list[str]:
    """Everything below a folder, hidden files too."""
    return sorted(str(path.relative_to(out)) for path in out.rglob("*"))
