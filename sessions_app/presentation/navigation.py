"""The side bar of the operator screens: what is looked at most comes first."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

_Item = dict[str, Any]


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of links."""
    return [
        {
            "title": "Look",
            "items": [
                _rows("Sessions", "session", "account_tree") | {"active": _among_sessions},
                _item("Health", "admin:tito_health", "monitoring", "sessions_app.view_session"),
                _item("What if", "admin:tito_what_if", "alt_route", "sessions_app.view_session"),
            ],
        },
        {
            "title": "Train",
            "items": [
                _exports("Exports", "exportjob", "download"),
                _exports("Rows handed out", "sample", "dataset"),
                _exports("Handouts", "handout", "outbox"),
                _exports("Traces", "trace", "timeline"),
            ],
        },
        {
            "title": "Rows",
            "collapsible": True,
            "items": [
                _rows("Records", "record", "receipt_long"),
                _rows("Events", "historyevent", "call_split"),
                _rows("Nodes", "node", "hub"),
                _rows("Messages", "message", "chat"),
                _rows("Checkpoints", "tokencheckpoint", "tag"),
                _rows("Unattached replies", "unattachedreply", "link_off"),
                _rows("Drift findings", "driftfinding", "difference"),
                _rows("Rewards", "reward", "military_tech"),
                _rows("Request heads", "requesthead", "handyman"),
                _rows("Side payloads", "sidepayload", "attach_file"),
                _rows("Idempotency claims", "idempotencyclaim", "fingerprint"),
                _exports("Export shards", "exportshard", "description"),
                _exports("Frozen sessions", "frozensession", "ac_unit"),
                _exports("Spans", "span", "linear_scale"),
                _exports("Waiting spans", "waitingspan", "hourglass"),
            ],
        },
        {
            "title": "Set up",
            "items": [
                _rows("Model profiles", "modelprofile", "tune"),
                _rows("Web processes", "processlease", "dns"),
                _item("Users", "admin:auth_user_changelist", "person", "auth.view_user"),
                _rows("Who read what", "dataread", "visibility"),
                _item("Groups", "admin:auth_group_changelist", "group", "auth.view_group"),
            ],
        },
    ]


def favicon(request: HttpRequest) -> str:
    """The mark in the browser's tab."""
    return static("tito/mark.svg")


def _among_sessions(request: HttpRequest) -> bool:
    """Whether the page is the list of sessions, or belongs to one."""
    own = str(reverse_lazy("admin:sessions_app_session_changelist"))
    others = ("health/", "what-if/", "compare/")
    return request.path.startswith(own) and not request.path.startswith(
        tuple(own + other for other in others)
    )


def _rows(title: str, model: str, icon: str) -> _Item:
    return _item(title, f"admin:sessions_app_{model}_changelist", icon, f"sessions_app.view_{model}")


def _exports(title: str, model: str, icon: str) -> _Item:
    return _item(title, f"admin:trainer_export_{model}_changelist", icon, f"trainer_export.view_{model}")


def _item(title: str, view: str, icon: str, permission: str) -> _Item:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(view),
        "permission": lambda request: request.user.has_perm(permission),
    }
