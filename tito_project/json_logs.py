"""Log lines as JSON objects, for collectors: what is passed as `extra` becomes fields.

Invariant: one line is one object, whatever a message holds.
"""

import json
import logging
from datetime import UTC, datetime

from tito_project.quiet_logs import QuietFormatter

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(QuietFormatter):
    """Formats a record as one object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)
