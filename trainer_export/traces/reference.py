"""Exceptions of the reference that Python has no name for.

They are answers, not failures of ours: `manage.py triplets` prints type and text, an export reports the
trace. Everything else the reference raises is a builtin (ValueError, TypeError, KeyError, ...) and is
raised as such.
"""


class ValidationError(ValueError):
    """A value does not have the shape the data model asks for."""
