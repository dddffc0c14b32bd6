"""Celery writes the text of whatever a task raises into its log: tasks raise what may be read there."""

from typing import Any

from celery import Task
from celery.exceptions import CeleryError

from tito_project.quiet_logs import told


class TaskFailed(Exception):
    """A task ended in an error nobody expected; says its kind and where it arose."""


class QuietTask(Task):
    """Every task of ours."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        try:
            return super().__call__(*args, **kwargs)
        except CeleryError:  # how a task asks for something
            raise
        except Exception as error:
            raise TaskFailed(told(error)) from None
