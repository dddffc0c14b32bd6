"""What the guides tell people to type exists: commands with their options, settings, metrics of the rules."""

import re
import shlex
import shutil
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tito_project.configuration import Configuration, read
from tito_project.env import Environment

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])


def commands(guide: Path) -> list[list[str]]:
    """Each `manage.py …` of a guide with its words, up to where the code span or the line ends."""
    text = guide.read_text(encoding="utf-8")
    return [
        shlex.split(found, comments=True) for found in re.findall(r"manage\.py ([a-z_]+[^`\n|&;)]*)", text)
    ]


def options(name: str) -> set[str]:
    app = get_commands()[name]
    command = load_command_class(app, name) if isinstance(app, str) else app
    parser: ArgumentParser = command.create_parser("manage.py", name)
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_commands_take_the_options_that_a_guide_gives_them(guide: Path) -> None:
    wrong = [
        (name, word)
        for name, *words in commands(guide)
        if name in get_commands()
        for word in words
        if word.startswith("--") and word.partition("=")[0].rstrip(".,:") not in options(name)
    ]
    assert wrong == []


def test_the_commands_of_the_operations_guide_are_found_at_all() -> None:
    found = {name for name, *_ in commands(ROOT / "docs/operations.md")}
    assert {"serve", "worker", "migrate", "recover", "check", "retention", "createsuperuser"} <= found


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_settings_that_a_guide_names_are_settings(guide: Path) -> None:
    known = {f"TITO_{name.upper()}" for name in Configuration.__dataclass_fields__}
    named = set(re.findall(r"\bTITO_[A-Z0-9_]*[A-Z0-9]\b", guide.read_text(encoding="utf-8")))
    assert named - known - {"TITO_SERVER", "TITO_URL"} == set()


UNITS = re.findall(
    r"```ini title=(\S+\.service)\n(.*?)```",
    (ROOT / "docs/operations.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize(("name", "text"), UNITS, ids=[name for name, _ in UNITS])
def test_the_units_of_the_guide_are_units(name: str, text: str, tmp_path: Path) -> None:
    """With a program and an account that exist here."""
    here = text.replace("/opt/tito/.venv/bin/python", "/bin/true").replace("User=tito\n", "")
    (tmp_path / name).write_text(here, encoding="utf-8")
    instance = tmp_path / name.replace("@.", "@8001.")
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(instance)], capture_output=True, text=True, check=False
    )
    told = [line for line in ended.stderr.splitlines() if str(tmp_path) in line or name in line]
    assert (ended.returncode, told) == (0, [])


def test_a_unit_stops_later_than_its_process_drains() -> None:
    waits = dict(UNITS)["tito-web@.service"].split("TimeoutStopSec=")[1].split("\n")[0]
    assert int(waits) > read(Environment({})).drain_s
