"""docs/engines.md names every backend and every fault there is."""

from pathlib import Path

from sessions_app.backends.demo.faults import FAULTS
from tito_project.configuration import BACKENDS

TEXT = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")


def test_every_backend_has_its_row():
    assert all(f"| `{name}` |" in TEXT for name in BACKENDS)


def test_every_fault_is_listed():
    listed = TEXT.split("Faults: `")[1].split("`")[0].split()
    assert listed == list(FAULTS)
