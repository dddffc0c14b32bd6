"""Log lines for collectors."""

import json
import logging

from tito_project.json_logs import JsonFormatter


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


def test_an_exception_is_told() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        import sys

        record = logging.LogRecord("some", logging.ERROR, "file.py", 1, "failed", (), sys.exc_info())
    assert "ValueError: why" in json.loads(JsonFormatter().format(record))["exception"]
