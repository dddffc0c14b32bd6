"""Which sessions, and which of their rows, an export takes. An unknown filter is refused, never ignored."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sessions_app.errors import InvalidArgument
from sessions_app.json_text import text_of
from trainer_export.arguments import Arguments, is_text
from trainer_export.samples.values import Status

SESSION_STATES = ("open", "finished", "closed", "idle")


@dataclass(frozen=True, slots=True)
class Filters:
    """Everything that is given has to hold. None = any."""

    sessions: list[str] | None = None
    """Session ids, 32 hex digits each."""
    rollouts: list[str] | None = None
    groups: list[str] | None = None
    since: str | None = None
    """ISO 8601: created then or later."""
    until: str | None = None
    """ISO 8601: created before."""
    finished_since: str | None = None
    finished_until: str | None = None
    labels: Mapping[str, str] | None = None
    """All of these."""
    profile: str | None = None
    harness: str | None = None
    session_status: list[str] | None = None
    finish_status: list[str] | None = None
    """What `finish` said."""
    finished: bool | None = None
    """True: ended by finish, delete or the reaper. False: open."""
    complete_groups: bool | None = None
    """True: only sessions of groups in which group_size rollouts have ended."""
    reward: bool | None = None
    """Whether a reward was reported."""
    stale: bool | None = None
    """True: only sessions of which rows were handed out before more became known."""
    exported: bool | None = None
    """Whether the session stands in a finished export as it is now."""
    root_class: list[str] | None = None
    """Of the row's root."""
    agent: list[str] | None = None
    """Labels of the agent that sent the leaf's request."""
    status: list[str] | None = None
    """Of the row."""
    min_weight_version: int | None = None
    """Every trained token was sampled by these weights or newer ones."""
    max_weight_version: int | None = None
    max_staleness: int | None = None
    """As min_weight_version, counted back from the weights the session's profile serves now."""

    @classmethod
    def of(cls, arguments: Arguments) -> "Filters":
        """The filters of a request. Raises InvalidArgument."""
        arguments.refuse_unknown(field.name for field in fields(cls))
        return cls(
            sessions=_session_ids(arguments.texts("sessions")),
            rollouts=arguments.texts("rollouts"),
            groups=arguments.texts("groups"),
            since=_moment(arguments, "since"),
            until=_moment(arguments, "until"),
            finished_since=_moment(arguments, "finished_since"),
            finished_until=_moment(arguments, "finished_until"),
            labels=_labels(arguments),
            profile=arguments.text("profile"),
            harness=arguments.text("harness"),
            session_status=_among(arguments, "session_status", SESSION_STATES),
            finish_status=arguments.texts("finish_status"),
            finished=_flag(arguments, "finished"),
            complete_groups=_flag(arguments, "complete_groups"),
            reward=_flag(arguments, "reward"),
            stale=_flag(arguments, "stale"),
            exported=_flag(arguments, "exported"),
            root_class=arguments.texts("root_class"),
            agent=arguments.texts("agent"),
            status=_among(arguments, "status", tuple(Status)),
            min_weight_version=arguments.integer("min_weight_version", most=2**62),
            max_weight_version=arguments.integer("max_weight_version", most=2**62),
            max_staleness=arguments.integer("max_staleness"),
        )

    def as_json(self) -> dict[str, Any]:
        """Only what is given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _session_ids(texts: list[str] | None) -> list[str] | None:
    for text in texts or []:
        try:
            UUID(text)
        except ValueError:
            raise InvalidArgument(f"sessions: {text[:40]!r} is no session id") from None
    return None if texts is None else [UUID(text).hex for text in texts]


def _moment(arguments: Arguments, name: str) -> str | None:
    text = arguments.text(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(
            f"{name} must be a time such as 2026-01-31T12:00:00Z, got {text[:40]!r}"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _labels(arguments: Arguments) -> dict[str, str] | None:
    labels = arguments.mapping("labels")
    if labels is not None and not all(is_text(name) and is_text(text) for name, text in labels.items()):
        raise InvalidArgument("labels must be an object of texts")
    return labels


def _among(arguments: Arguments, name: str, allowed: tuple[str, ...]) -> list[str] | None:
    texts = arguments.texts(name)
    for text in texts or []:
        if text not in allowed:
            raise InvalidArgument(f"{name}: {text[:40]!r} is not one of {', '.join(allowed)}")
    return texts


def _flag(arguments: Arguments, name: str) -> bool | None:
    return arguments.flag(name) if arguments.given(name) else None


_ENDED = "s.status <> 'open'"
_HAS_REWARD = "EXISTS (SELECT 1 FROM sessions_app_reward r WHERE r.session_id = s.id)"
_IS_STALE = """EXISTS (SELECT 1 FROM trainer_export_sample x WHERE x.session_id = s.id
    AND x.stale_at IS NOT NULL)"""
IS_EXPORTED = """EXISTS (SELECT 1 FROM trainer_export_frozensession f
    LEFT JOIN trainer_export_exportjob j ON j.id = f.job_id
    LEFT JOIN trainer_export_handout h ON h.id = f.handout_id
    WHERE f.session_id = s.id AND f.next_seq = s.next_seq AND (j.state = 'done' OR h.state = 'acked'))"""
"""Handed to training as it stands now: by a finished export, or acknowledged by a stream's consumer."""
_COMPLETE = "EXISTS (SELECT 1 FROM export_groups g WHERE g.group_id = s.group_id AND g.complete)"


def conditions(filters: Filters) -> tuple[str, dict[str, Any]]:
    """The filters on sessions as an SQL condition on `s` (session) and `p` (profile), with its parameters."""
    parameters = filters.as_json()
    found = [_CONDITIONS[name] for name in parameters if name in _CONDITIONS]
    for name, condition in _FLAGS.items():
        if name in parameters:
            found.append(condition if parameters[name] else f"NOT ({condition})")
    if filters.sessions is not None:
        parameters["sessions"] = [UUID(text) for text in filters.sessions]
    if filters.labels is not None:
        parameters["labels"] = text_of(dict(filters.labels))
    return " AND ".join(found) or "true", parameters


_CONDITIONS = {
    "sessions": "s.id = ANY(%(sessions)s)",
    "rollouts": "coalesce(s.rollout_id, replace(s.id::text, '-', '')) = ANY(%(rollouts)s)",
    "groups": "s.group_id = ANY(%(groups)s)",
    "since": "s.created_at >= %(since)s::timestamptz",
    "until": "s.created_at < %(until)s::timestamptz",
    "finished_since": "s.finished_at >= %(finished_since)s::timestamptz",
    "finished_until": "s.finished_at < %(finished_until)s::timestamptz",
    "labels": "s.labels <> '{}' AND s.labels::jsonb @> %(labels)s::text::jsonb",
    "profile": "p.name = %(profile)s",
    "harness": "s.harness = %(harness)s",
    "session_status": "s.status = ANY(%(session_status)s)",
    "finish_status": "s.finish_status = ANY(%(finish_status)s)",
}
_FLAGS = {
    "finished": _ENDED,
    "complete_groups": _COMPLETE,
    "reward": _HAS_REWARD,
    "stale": _IS_STALE,
    "exported": IS_EXPORTED,
}
