"""Options that are settings."""

import pytest

import manage
from tito_project.commandline import options_into_environment


@pytest.mark.parametrize(
    "arguments", [["up", "--port", "9", "--home", "h"], ["up", "--home=h", "--engine", "demo", "--port=9"]]
)
def test_options_of_up_become_settings(arguments: list[str]) -> None:
    environment = {"TITO_PORT": "8000"}
    options_into_environment(arguments, environment)
    assert environment == {"TITO_PORT": "9", "TITO_HOME": "h"}


@pytest.mark.parametrize("arguments", [[], ["demo_engine", "--port", "9"], ["up", "--port"], ["up"]])
def test_other_commands_and_missing_values_change_nothing(arguments: list[str]) -> None:
    environment: dict[str, str] = {}
    options_into_environment(arguments, environment)
    assert environment == {}


def test_ctrl_c_in_any_command_is_a_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manage, "execute_from_command_line", interrupted)
    monkeypatch.setattr("sys.argv", ["manage.py", "help"])
    with pytest.raises(SystemExit) as left:
        manage.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "tito: interrupted\n"
