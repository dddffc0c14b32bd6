"""The Django project. Importing it makes our Celery application the current one, in any process."""

from tito_project.celery import app as celery_app

__all__ = ["celery_app"]
