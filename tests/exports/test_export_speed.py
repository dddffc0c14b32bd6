"""Exports are fast, and hold no more in memory than a batch of rollouts."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

from sessions_app.api.wiring import conninfo
from tests.integration.web import ROOT, database_url
from trainer_export.measuring import Size, measure
from trainer_export.renderers import profile_renderer

_LEAST_A_MINUTE = 20_000_000

_PROGRAM = """
import sys
import django
django.setup()
from django.conf import settings
from sessions_app.api.wiring import conninfo
from trainer_export.measuring import Size, measure
from trainer_export.renderers import profile_renderer
for sessions in map(int, sys.argv[1:]):
    print(measure(conninfo(), settings.TITO, profile_renderer, Size(sessions, 20, 200, 4800)).peak_mb)
"""


@pytest.fixture(autouse=True)
def _fresh_renderers() -> None:
    profile_renderer.cache_clear()


def test_twenty_million_tokens_a_minute_on_one_core(toy) -> None:
    """Processor time of this process with everything but Postgres, writing included."""
    measured = measure(conninfo(), settings.TITO, profile_renderer, Size(60, 20, 200, 300))
    assert measured.tokens == 600_000
    assert measured.tokens_a_minute > _LEAST_A_MINUTE


@pytest.mark.slow
def test_memory_does_not_grow_with_the_export(toy) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "15", "75"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "tito_project.settings",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    small, large = map(float, ran.stdout.split())
    assert large - small < 100, "15 and 75 sessions of 100,000 tokens"
