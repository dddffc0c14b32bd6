"""Options that are settings."""

import pytest

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
