"""What `--help` says."""

import pytest
from django.core.management import CommandParser, get_commands, load_command_class

OURS = {name: app for name, app in get_commands().items() if app in ("sessions_app", "trainer_export")}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_option_of_ours_says_what_it_is(name: str) -> None:
    command = load_command_class(OURS[name], name)
    parser = CommandParser()
    command.add_arguments(parser)
    assert command.help
    assert [action.dest for action in parser._actions if not action.help] == []
