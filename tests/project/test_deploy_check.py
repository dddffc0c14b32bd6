"""The settings that docs/operations.md names for production leave Django's own check nothing to say."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def production() -> dict[str, str]:
    """The environment file of the operations guide."""
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    block = guide.split("```ini title=tito.env\n")[1].split("```")[0]
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", block, re.MULTILINE))


def checked(**more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TITO_")}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**kept, **production(), **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_check_is_clean_with_the_settings_of_the_guide(tmp_path) -> None:
    ended = checked(TITO_HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stderr


def test_the_check_is_not_clean_without_tls(tmp_path) -> None:
    ended = checked(TITO_HOME=str(tmp_path), TITO_BEHIND_TLS="off")
    assert ended.returncode == 1
    assert "SESSION_COOKIE_SECURE" in ended.stderr
