"""What a replay is asked for: which sessions, which changes. Its JSON form is what a job keeps and a page
shows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sessions_app.insight.what_if.setup import Changes
from sessions_app.models import Session
from tito_project.configuration import HISTORY_POLICIES, ON_NONLINEAR

MOST_SESSIONS = 10_000
DEFAULT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A replay to be done."""

    changes: Changes
    sessions: tuple[str, ...] = ()
    """Ids; empty = all that the rest selects."""
    since: str | None = None
    """ISO 8601: created then or later."""
    until: str | None = None
    harness: str | None = None
    limit: int = DEFAULT_LIMIT
    """The newest so many."""
    renders: bool = False
    """Count ids with a renderer, and what re-rendering every turn would split."""

    def as_json(self) -> dict[str, Any]:
        """As a document."""
        return asdict(self)


def wanted_of(document: Mapping[str, Any]) -> Wanted:
    """What a document asks for. Raises ValueError naming what is wrong."""
    changes = Changes(**{one.name: _given(document.get(one.name)) for one in fields(Changes)})
    _check_choice("policy", changes.policy, HISTORY_POLICIES)
    _check_choice("on_nonlinear", changes.on_nonlinear, ON_NONLINEAR)
    if changes == Changes() and not document.get("renders"):
        raise ValueError("nothing is to be changed: name a policy, a matcher, a harness profile or a profile")
    return Wanted(
        changes=changes,
        sessions=tuple(_session_id(text) for text in document.get("sessions") or ()),
        since=_moment("since", document.get("since")),
        until=_moment("until", document.get("until")),
        harness=document.get("of_harness") or None,
        limit=_limit(document.get("limit")),
        renders=bool(document.get("renders")) or changes.profile is not None,
    )


def restored(document: Mapping[str, Any]) -> Wanted:
    """The inverse of `as_json`."""
    values = dict(document)
    changes = Changes(**values.pop("changes"))
    return Wanted(changes=changes, **{**values, "sessions": tuple(values["sessions"])})


def chosen(wanted: Wanted) -> list[UUID]:
    """The ids of the sessions, newest first. One statement, by an index."""
    rows = Session.objects.order_by("-created_at").values_list("id", flat=True)
    if wanted.sessions:
        rows = rows.filter(id__in=[UUID(text) for text in wanted.sessions])
    if wanted.since is not None:
        rows = rows.filter(created_at__gte=datetime.fromisoformat(wanted.since))
    if wanted.until is not None:
        rows = rows.filter(created_at__lt=datetime.fromisoformat(wanted.until))
    if wanted.harness is not None:
        rows = rows.filter(harness=wanted.harness)
    return list(rows[: wanted.limit])


def _given(value: Any) -> Any:
    """Blank fields of a form are as good as absent; 0 is not."""
    return None if value == "" else value


def _check_choice(name: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise ValueError(f"{name} {value!r} is not one of: {', '.join(allowed)}")


def _session_id(text: str) -> str:
    try:
        return UUID(text.strip()).hex
    except ValueError:
        raise ValueError(f"{text!r} is no session id: those are 32 hex digits") from None


def _moment(name: str, text: str | None) -> str | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is no moment, such as 2026-01-31 or 2026-01-31T12:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _limit(value: Any) -> int:
    try:
        limit = int(value or DEFAULT_LIMIT)
    except ValueError:
        raise ValueError(f"limit {value!r} is no number") from None
    if not 1 <= limit <= MOST_SESSIONS:
        raise ValueError(f"limit must be between 1 and {MOST_SESSIONS}")
    return limit
