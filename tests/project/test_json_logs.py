"""Log lines for collectors."""

import json
import logging
import sys

import pytest
from django.conf import settings

from tito_project.json_logs import JsonFormatter
from tito_project.quiet_logs import QuietFormatter


def line(message: str, *args: object, **extra: object) -> dict[str, object]:
    record = logging.getLogger("some").makeRecord(
        "some", logging.WARNING, "file.py", 1, message, args, None, extra=extra or None
    )
    text = JsonFormatter().format(record)
    assert "\n" not in text
    return json.loads(text)


def test_a_line_is_one_object_whatever_the_message_holds() -> None:
    told = line("two\nlines and %s", '"quotes"')
    assert told["message"] == 'two\nlines and "quotes"'
    assert (told["level"], told["logger"]) == ("WARNING", "some")


def test_extras_become_fields() -> None:
    assert line("turn", session="ab", node=3)["node"] == 3


def failed(error: Exception) -> logging.LogRecord:
    try:
        raise error
    except Exception:
        return logging.LogRecord("some", logging.ERROR, "file.py", 1, "failed", (), sys.exc_info())


@pytest.mark.parametrize("formatter", [JsonFormatter(), QuietFormatter()])
def test_an_exception_is_told_by_kind_and_place_without_what_it_quotes(formatter: logging.Formatter) -> None:
    text = formatter.format(failed(ValueError("a row of somebody's conversation")))
    assert "ValueError at test_json_logs.py" in text
    assert "somebody" not in text


def test_what_is_said_of_connections_and_files_is_kept() -> None:
    text = QuietFormatter().format(failed(ConnectionRefusedError("no answer from 10.0.0.7")))
    assert "no answer from 10.0.0.7" in text


def test_the_default_log_is_quiet_too() -> None:
    assert settings.LOGGING["formatters"]["line"]["()"] == "tito_project.quiet_logs.QuietFormatter"
