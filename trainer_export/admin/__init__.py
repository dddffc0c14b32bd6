"""Operator screens of exports and traces. Importing the modules registers them."""

from trainer_export.admin import exports, traces, waiting

__all__ = ["exports", "traces", "waiting"]
