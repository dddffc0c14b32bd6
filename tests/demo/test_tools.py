"""The agent's tools: executed for real, inside their folder, and never raising."""

import json
from pathlib import Path

import pytest

from sessions_app.demo_agent.tools import DEFINITIONS, Toolbox, fill


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").touch()
    fill(folder)
    return Toolbox(folder)


def run(toolbox: Toolbox, name: str, **arguments: object) -> str:
    return toolbox.run(name, json.dumps(arguments))


def test_it_calculates(toolbox: Toolbox) -> None:
    assert run(toolbox, "calculate", expression="17 * 23") == "391"
    assert run(toolbox, "calculate", expression="1 / 0") == "error: division by zero"


def test_it_lists_its_folder(toolbox: Toolbox) -> None:
    assert run(toolbox, "list_files", path=".") == "README.txt\ndata/\nnotes/"
    assert run(toolbox, "list_files", path="./notes") == "naïve ideas.txt\ntodo.txt"
    assert run(toolbox, "list_files") == "README.txt\ndata/\nnotes/"


@pytest.mark.parametrize("path", ["..", "/", "/etc", "notes/../..", "~/../..", "../work/../"])
def test_it_lists_nothing_else(toolbox: Toolbox, path: str) -> None:
    assert run(toolbox, "list_files", path=path).startswith("error: ")


def test_a_link_does_not_lead_out(tmp_path: Path, toolbox: Toolbox) -> None:
    (tmp_path / "work" / "out").symlink_to(tmp_path)
    assert run(toolbox, "list_files", path="out") == "error: outside of the working folder"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("calculate", "{"),
        ("calculate", "[]"),
        ("calculate", "{}"),
        ("calculate", '{"expression": {"a": 1}}'),
        ("list_files", '{"path": "\\u0000"}'),
        ("list_files", '{"path": "' + "a" * 5000 + '"}'),
        ("list_files", '{"path": 7}'),
        ("list_files", '{"path": "README.txt"}'),
        ("remove_files", "{}"),
    ],
)
def test_what_goes_wrong_is_the_result(toolbox: Toolbox, name: str, arguments: str) -> None:
    assert toolbox.run(name, arguments).startswith("error: ")


def test_every_tool_on_offer_exists(toolbox: Toolbox) -> None:
    for definition in DEFINITIONS:
        function = definition["function"]
        assert "there is no tool" not in toolbox.run(function["name"], "{}")
