"""The Celery application. Tasks live in the applications' `tasks.py`; options in settings as CELERY_…."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tito_project.settings")

app = Celery("tito", task_cls="tito_project.quiet_tasks:QuietTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
