"""Who may do what: viewers look, operators act on sessions and jobs, admins set up profiles and people and
purge text.

Roles are groups of permissions, made (and completed) after each migrate. Nobody's role lets a checkpoint be
changed.
"""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission
from django.db.models import Q, QuerySet

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
_APPS = ("sessions_app", "trainer_export")
OPERATE = "sessions_app.change_session"
"""What makes an operator: closing sessions, classing roots, revoking keys, asking for replays and exports."""
EXPORT = "trainer_export.add_exportjob"
"""Operators, too: asking for an export of chosen sessions."""
PURGE = "sessions_app.delete_session"
"""What nobody can take back: emptying a session's text. Nothing in the screens deletes a session itself."""
_ACTS = Q(
    content_type__app_label="sessions_app", codename__in=("change_session", "change_node", "add_whatifjob")
)
_EXPORTS = Q(content_type__app_label="trainer_export", codename__in=("add_exportjob", "change_exportjob"))
_SETS_UP = Q(
    content_type__app_label="sessions_app",
    codename__in=("add_modelprofile", "change_modelprofile", "delete_session"),
) | Q(content_type__app_label="auth")


_AUDITS = Q(codename="view_dataread")


def may_operate(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether a user may act."""
    return user.has_perm(OPERATE)  # type: ignore[union-attr]


def may_purge(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether a user may empty what was said."""
    return user.has_perm(PURGE)  # type: ignore[union-attr]


def permissions_of(role: str) -> QuerySet[Permission]:
    """What a role may do."""
    looks = Q(content_type__app_label__in=_APPS, codename__startswith="view_") & ~_AUDITS
    acts = {VIEWER: looks, OPERATOR: looks | _ACTS | _EXPORTS}
    return Permission.objects.filter(acts.get(role, looks | _ACTS | _EXPORTS | _SETS_UP | _AUDITS))


def complete_roles(**_: Any) -> None:
    """Make the groups, and give them what they lack. What an administrator added to a group stays."""
    for role in (VIEWER, OPERATOR, ADMIN):
        group, _created = Group.objects.get_or_create(name=role)
        group.permissions.add(*permissions_of(role))
