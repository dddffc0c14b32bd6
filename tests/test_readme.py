"""The README against the code: its settings table, its program, its commands, its links."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import get_commands

from sessions_app.api.asgi import route
from sessions_app.rendering.families.parsers import USUAL_REASONING_PARSER, USUAL_TOOL_PARSER
from tests.demo.engine import running_demo_engine
from tests.harness import running_server
from tito_project.configuration import Configuration, read
from tito_project.embedded.welcome import Welcome
from tito_project.env import Environment
from tito_project.exposure import LOOPBACK_HOSTS, default_allowed_hosts

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = ("tito_project", "sessions_app", "trainer_export")
DERIVED = {
    "TITO_HOME": ".tito",
    "TITO_EXPORT_URL": ".tito/exports",
    "TITO_MODEL": "demo tokenizer",
    "TITO_INSTANCE_ID": "generated",
    "TITO_ON_TRUNCATED": "by policy",
    "TITO_ALERTS": "none",
    "TITO_TOOL_PARSER": "by family",
    "TITO_REASONING_PARSER": "by family",
}
"""Defaults whose value says less than its words."""
OF_DJANGO = {
    "DATABASE_URL": "embedded",
    "REDIS_URL": "embedded",
    "SECRET_KEY": "generated",
    "DEBUG": "off",
    "ALLOWED_HOSTS": "loopback",
    "CSRF_TRUSTED_ORIGINS": "none",
}


def section(title: str) -> str:
    """The text below a heading."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> Iterator[list[str]]:
    """The cells of a section's table rows."""
    for line in section(title).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def table() -> dict[str, tuple[str, str]]:
    """Default and meaning by variable."""
    found = [
        (cells[0].strip("`"), cells[1].strip("`"), cells[2]) for cells in rows("Settings") if len(cells) == 3
    ]
    variables = [each for each in found if re.fullmatch(r"[A-Z][A-Z0-9_]+", each[0])]
    assert len({name for name, _, _ in variables}) == len(variables), "a variable stands there twice"
    return {name: (default, meaning) for name, default, meaning in variables}


def variable(field: str) -> str:
    return f"TITO_{field.upper()}"


def fields() -> list[str]:
    return [field.name for field in dataclasses.fields(Configuration) if field.name != "pinned"]


def worded(value: Any) -> str:
    """A default as the table words it."""
    match value:
        case None | ():
            return "none"
        case bool():
            return "on" if value else "off"
        case tuple():
            return ",".join(value)
        case float():
            return f"{value:g}"
    return str(value)


class Recording(Environment):
    """An empty environment that remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked: set[str] = set()

    def _raw(self, name: str) -> str | None:
        self.asked.add(name)
        return super()._raw(name)


def test_every_setting_has_a_row_and_every_row_is_a_setting() -> None:
    environment = Recording()
    read(environment)
    assert environment.asked == {variable(field) for field in fields()}
    asked = re.findall(
        r'_env\.\w+\(\s*"([A-Z_]+)"', (ROOT / "tito_project/settings.py").read_text(encoding="utf-8")
    )
    assert set(asked) == set(OF_DJANGO)
    assert set(table()) == environment.asked | set(OF_DJANGO)


def test_no_variable_is_read_past_the_table() -> None:
    texts = [path.read_text(encoding="utf-8") for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'"(TITO_[A-Z0-9_]+)"', text)}
    assert named <= set(table())


@pytest.mark.parametrize("field", fields())
def test_defaults_are_those_of_the_code(field: str) -> None:
    name = variable(field)
    expected = DERIVED.get(name) or worded(getattr(read(Environment({})), field))
    assert table()[name][0] == expected


def test_derived_defaults_are_what_their_words_say() -> None:
    one, other = read(Environment({})), read(Environment({}))
    assert one.home == Path(".tito").absolute()
    assert Path(one.export_url) == one.home / "exports"
    assert one.model == ""
    assert one.instance_id != other.instance_id
    assert one.on_truncated is None
    assert one.alerts == {}
    assert (one.tool_parser, one.reasoning_parser) == ("", "")
    for kind, usual in (("TOOL", USUAL_TOOL_PARSER), ("REASONING", USUAL_REASONING_PARSER)):
        assert f"else `{usual}`" in table()[f"TITO_{kind}_PARSER"][1]
    meaning = table()["TITO_ON_TRUNCATED"][1]
    for policy in ("tree", "linear", "rollback"):
        assert f"`{one.truncation_rule(policy)}` ({policy})" in meaning


def test_defaults_of_django_settings_are_what_their_words_say() -> None:
    assert {name: table()[name][0] for name in OF_DJANGO} == OF_DJANGO
    assert settings.DEBUG is False
    assert settings.CSRF_TRUSTED_ORIGINS == []
    assert set(default_allowed_hosts("127.0.0.1")) == set(LOOPBACK_HOSTS)


@pytest.mark.parametrize("field", fields())
def test_a_setting_has_an_effect(field: str) -> None:
    files = [
        path for folder in CODE for path in (ROOT / folder).rglob("*.py") if path.name != "configuration.py"
    ]
    used = {"on_truncated": "truncation_rule"}.get(field, field)
    uses = re.compile(rf"(?:configuration|TITO)\.{used}\b")
    assert any(uses.search(path.read_text(encoding="utf-8")) for path in files), f"{field} is used nowhere"


def program() -> str:
    return README.split("```python\n")[1].split("```")[0]


def test_the_program_is_the_one_that_up_prints() -> None:
    facts = dict.fromkeys((field.name for field in dataclasses.fields(Welcome)), None)
    welcome = Welcome(**facts | {"base": "http://127.0.0.1:8000"})
    assert program() == welcome.snippet()


@pytest.mark.django_db
def test_the_program_runs_as_it_stands() -> None:
    with (
        running_demo_engine() as (_, url),
        running_server({"TITO_BACKEND": "demo", "TITO_BACKEND_URL": url}) as base,
    ):
        assert program().count("http://127.0.0.1:8000") == 1
        code = program().replace("http://127.0.0.1:8000", base)
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert "17 * 23" in ended.stdout


def test_the_test_command_is_what_ci_runs() -> None:
    commands = section("Run and test").split("```sh\n")[2].split("\n```")[0].split(" && ")
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert commands[0] == "python3 -m venv .venv"
    assert all(f"\n{command}\n" in ci for command in commands[1:])


def test_every_command_exists() -> None:
    named = {name for cells in rows("Commands") for name in re.findall(r"`([a-z_]+)`", cells[0])}
    ours = {name for name, app in get_commands().items() if app in ("sessions_app", "trainer_export")}
    assert named == ours


def test_every_url_is_answered() -> None:
    cells = [cells[0] for cells in rows("What you see") if "/" in cells[0]]
    paths = {path for cell in cells for path in re.findall(r"(/[\w/{}-]+)(?:`|…)", cell)}
    assert len(paths) >= 15
    for path in paths:
        assert answers(path.replace("{id}", "a" * 32)), path


def answers(path: str) -> bool:
    """A view of its own, or the proxy where the README says so; a prefix is tried with a protocol's path."""
    found = route(path.replace("{path}", "tokenize") + ("chat/completions" if path.endswith("/v1/") else ""))
    return found is not None and ("path" not in found[1] or "{path}" in path)


@pytest.mark.parametrize(
    "document", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda p: p.name
)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if not (document.parent / link).exists()]
    assert missing == []


def test_every_named_folder_exists() -> None:
    for cells in rows("Where things are"):
        names = re.findall(r"`([\w/]+/)`", cells[0])
        parent = ROOT / names[0].split("/")[0] if names else ROOT
        assert all((ROOT / name).is_dir() or (parent / name).is_dir() for name in names), names


def test_every_test_that_a_document_names_exists() -> None:
    documents = [README, *(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))]
    named = [found for text in documents for found in re.findall(r"(tests/[\w/]+\.py)::(\w+)", text)]
    assert len(named) >= 12
    for file, name in named:
        assert re.search(
            rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
        ), name
