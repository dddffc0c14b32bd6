"""How many tokens a minute an export writes as Parquet on one core, and how much memory it takes, by size.

Each size is a process of its own: what it ever had in memory is then what one export took.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

_TURNS = 20
_PROMPT_SHARE = 0.4
_ROOT = Path(__file__).resolve().parents[3]
_FIGURES = ("tokens_a_minute", "wall_tokens_a_minute", "peak_mb", "before_mb")


class ExportFailed(Exception):
    """The measuring process ended with an error."""


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module. Keys: sessions x tokens of each."""
    found = {
        f"{sessions}x{tokens // 1000}k": await _exported(rig, sessions, tokens)
        for sessions, tokens in sizes.exports
    }
    return {f"export_{figure}": {size: each[figure] for size, each in found.items()} for figure in _FIGURES}


async def _exported(rig: Rig, sessions: int, tokens: int) -> dict[str, Any]:
    prompt = int(tokens / _TURNS * _PROMPT_SHARE)
    arguments = (sessions, _TURNS, prompt, tokens // _TURNS - prompt)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "trainer_export.measuring",
        *map(str, arguments),
        cwd=_ROOT,
        env=rig.installation.environment | {"DJANGO_SETTINGS_MODULE": "tito_project.settings"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await child.communicate()
    if child.returncode:
        raise ExportFailed(complained.decode(errors="replace"))
    figures: dict[str, Any] = json.loads(said)
    return figures
