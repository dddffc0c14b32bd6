"""Operator screens in Django's admin. Importing the modules registers them."""

from sessions_app.admin import checkpoint, drift, event, node, profile, record, session

__all__ = ["checkpoint", "drift", "event", "node", "profile", "record", "session"]
