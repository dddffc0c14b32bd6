"""Application configuration."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    """Registers `sessions_app` with Django."""

    name = "sessions_app"
    verbose_name = "Sessions"
