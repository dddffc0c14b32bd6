"""Errors in logs: their kind and where they arose. Their text only where it cannot quote a conversation: a
database names the failing row, a parser the bad value.
"""

import logging

import psycopg

from sessions_app.unexpected import whence

_QUOTES_NOBODY = (OSError, ImportError, psycopg.OperationalError)
"""What is said about connections, files and programs."""


class QuietFormatter(logging.Formatter):
    """The lines of the default log."""

    def formatException(self, ei: object) -> str:  # noqa: N802  (the library's name)
        """In place of the traceback, which ends in the error's text."""
        error = ei[1] if isinstance(ei, tuple) else None
        return "" if error is None else told(error)


def told(error: BaseException) -> str:
    """What may be said of an error."""
    return f"{whence(error)}: {error}" if isinstance(error, _QUOTES_NOBODY) else whence(error)
