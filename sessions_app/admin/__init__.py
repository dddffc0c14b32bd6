"""Operator screens in Django's admin. Importing the modules registers them."""

from sessions_app.admin import (
    accounts,
    checkpoint,
    data_read,
    drift,
    event,
    node,
    process_lease,
    profile,
    record,
    session,
    what_if,
)

__all__ = [
    "accounts",
    "checkpoint",
    "data_read",
    "drift",
    "event",
    "node",
    "process_lease",
    "profile",
    "record",
    "session",
    "what_if",
]
