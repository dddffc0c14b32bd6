"""Commands load what they need: an interpreter without our packages says what to do, and the screens are
loaded only where they are shown.
"""

import os
import subprocess
import sys

import pytest

from tests.integration.web import ROOT

_HEAVY = ("sessions_app.admin.session", "sessions_app.backends.http", "numpy", "aiohttp", "tokenizers")


def test_an_interpreter_without_django_is_told_what_to_install() -> None:
    ended = subprocess.run(
        [sys.executable, "-S", "manage.py", "up"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "pip install -r requirements.txt" in ended.stderr


def loaded_by(code: str) -> set[str]:
    told = f"{code}; import sys; print(*sys.modules)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tito_project.settings"}
    ended = subprocess.run(
        [sys.executable, "-c", told], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return set(ended.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import django; django.setup()",
        "import django; django.setup(); import sessions_app.management.commands.up",
    ],
)
def test_what_shows_no_screens_loads_none(code: str) -> None:
    assert loaded_by(code) & set(_HEAVY) == set()


def test_a_server_has_loaded_the_screens_before_anybody_asks() -> None:
    assert set(_HEAVY) <= loaded_by("import tito_project.asgi")
