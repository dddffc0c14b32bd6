"""Logs name an unexpected error by its kind and place."""

from sessions_app.unexpected import whence


def fails() -> None:
    try:
        raise KeyError("secret words")
    except KeyError as error:
        raise ValueError("more secret words") from error


def test_kind_and_place_are_told_and_no_text() -> None:
    try:
        fails()
    except ValueError as error:
        told = whence(error)
    assert told.startswith("ValueError at test_unexpected.py:")
    assert " fails; from KeyError at test_unexpected.py:" in told
    assert "secret" not in told
