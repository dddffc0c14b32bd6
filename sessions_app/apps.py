"""Application configuration."""

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class SessionsAppConfig(AppConfig):
    """Registers `sessions_app` with Django."""

    name = "sessions_app"
    verbose_name = "Sessions"

    def ready(self) -> None:
        """Roles are completed after each migrate, by the last application, when all permissions exist."""
        last = list(apps.get_app_configs())[-1]
        post_migrate.connect(_complete_roles, sender=last, dispatch_uid="tito.roles")


def _complete_roles(**_: Any) -> None:
    from sessions_app.admin.roles import complete_roles  # loads the screens: not in every process

    complete_roles()
