"""One version, said alike wherever it is said; each released one has its fixture."""

import re
import tomllib
from pathlib import Path

from django.conf import settings

from tito_project.version import VERSION

ROOT = Path(__file__).resolve().parent.parent.parent
HEADINGS = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_every_place_says_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    newest, state = HEADINGS[0]
    assert newest + (".dev0" if state == "not released" else "") == VERSION
    assert project["version"] == settings.SPECTACULAR_SETTINGS["VERSION"] == VERSION


def test_every_release_has_the_dump_that_its_migrations_are_tried_with() -> None:
    released = [version for version, state in HEADINGS if re.fullmatch(r"\d{4}-\d\d-\d\d", state)]
    assert released == [version for version, state in HEADINGS if state != "not released"]
    assert "0.1.0" in released
    for version in released:
        for ending in ("sql.gz", "json.gz"):
            file = ROOT / f"tests/fixtures/release_{version.replace('.', '_')}.{ending}"
            assert 0 < file.stat().st_size < 300_000
