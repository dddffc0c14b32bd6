"""What `up` prints."""

from dataclasses import replace
from pathlib import Path

from tito_project.embedded.welcome import Welcome

PLAIN = Welcome(
    base="http://127.0.0.1:8000",
    home=Path("/h"),
    engine="demo engine",
    engine_trouble=None,
    admin_password=None,
    admin_token_file=None,
    token_required=False,
    unreachable_names=False,
)


def test_the_password_is_shown_when_it_was_just_made() -> None:
    assert "user admin" not in PLAIN.text()
    assert "a forgotten password: `manage.py changepassword admin`" in PLAIN.text()
    assert "password s3cret\n" in replace(PLAIN, admin_password="s3cret").text()


def test_an_engine_that_is_not_ready_is_told() -> None:
    assert "not ready" not in PLAIN.text()
    assert "(not ready: no engine answers)\n" in replace(PLAIN, engine_trouble="no engine answers").text()


def test_the_program_is_a_program_in_every_mode() -> None:
    token = replace(PLAIN, token_required=True, admin_token_file=Path("/h/admin-token"))
    for welcome in (PLAIN, token, replace(PLAIN, token_required=True)):
        compile(welcome.snippet(), "snippet", "exec")
        assert f"\n\n{welcome.snippet()}\n" in welcome.text()


def test_a_generated_token_is_read_from_its_file_and_not_printed(tmp_path: Path) -> None:
    path = tmp_path / "admin-token"
    path.write_text("hidden-token\n")
    welcome = replace(PLAIN, token_required=True, admin_token_file=path)
    assert "hidden-token" not in welcome.text()
    line = next(line for line in welcome.snippet().splitlines() if line.startswith("headers = "))
    headers = eval(line.removeprefix("headers = "))
    assert headers["Authorization"] == "Bearer hidden-token"


def test_a_wildcard_bind_says_what_other_machines_need() -> None:
    assert "ALLOWED_HOSTS" in replace(PLAIN, unreachable_names=True).text()
    assert "ALLOWED_HOSTS" not in PLAIN.text()
