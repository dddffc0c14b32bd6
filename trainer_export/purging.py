"""Text goes, tokens stay: what was said is emptied, and the session can still be exported.

Invariant: nothing that a conversation said is left in any table (a test looks through all of them); no id, no
logprob and no place in the tree changes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from sessions_app.errors import InvalidJson
from sessions_app.json_text import loads, text_of
from sessions_app.turns.recording import MARKER, WRAPPED, is_marker

PURGED = "$purged"
"""Stands in a message whose text was purged."""

HAS_TEXT = f"""
    (EXISTS (SELECT 1 FROM sessions_app_message m WHERE m.session_id = s.id
             AND m.body NOT LIKE '%%{PURGED}%%')
     OR EXISTS (SELECT 1 FROM sessions_app_record r WHERE r.session_id = s.id AND (
             r.raw_reply IS NOT NULL OR r.raw_leading IS NOT NULL OR r.raw_tail IS NOT NULL
             OR r.client_params IS NOT NULL OR r.error_text IS NOT NULL))
     OR EXISTS (SELECT 1 FROM trainer_export_span p WHERE p.session_id = s.id
             AND p.attributes NOT LIKE '%%{PURGED}%%')
     OR EXISTS (SELECT 1 FROM trainer_export_trace t
             JOIN trainer_export_waitingspan w ON w.trace_id = t.trace_id
             WHERE t.session_id = s.id AND w.body NOT LIKE '%%{PURGED}%%'))
"""
"""Whether a session `s` holds text."""

IN_USE = """
    EXISTS (SELECT 1 FROM trainer_export_frozensession f
        LEFT JOIN trainer_export_exportjob j ON j.id = f.job_id
        LEFT JOIN trainer_export_handout h ON h.id = f.handout_id
        WHERE f.session_id = s.id AND (j.state IN ('pending', 'running') OR h.state = 'open'))
"""
"""Whether an unfinished export or an open handout needs a session `s`."""

_EMPTIED = (
    "UPDATE sessions_app_message SET sidecar = NULL, "
    f"body = json_build_object('role', role, 'content', NULL, '{PURGED}', true)::text ",
    "UPDATE sessions_app_historyevent SET stored_value = NULL, replayed_value = NULL, detail = NULL ",
    "UPDATE sessions_app_tokencheckpoint SET logprob_texts = NULL ",
    "UPDATE sessions_app_unattachedreply SET logprob_texts = NULL ",
    "UPDATE sessions_app_requesthead SET tools = NULL ",
    "UPDATE sessions_app_driftfinding SET details = '[]', reason = CASE WHEN reason IS NOT NULL THEN '' END ",
)
_STATE = f"""
    SELECT s.status, {HAS_TEXT}, {IN_USE},
        EXISTS (SELECT 1 FROM sessions_app_record r WHERE r.session_id = s.id AND r.state = 'intent')
    FROM sessions_app_session s WHERE s.id = %s FOR UPDATE OF s
"""
_OF_SESSIONS = "SELECT trace_id FROM trainer_export_trace WHERE session_id = ANY(%s)"
_NESTED = ("sampling_params", "stream_options", "logit_bias", "generation_config")
"""Objects of a request's parameters whose members have names of ours or the engine's, not the client's."""
_TOLD = ("id", "weight_version", "type")
"""Texts of an engine about its reply that quote nobody."""
_NAMES = ("id", "name", "type", "kind", "finish_reason", "finish_reasons", "model")
_SAID = ("input", "output", "prompt", "completion", "messages", "content", "arguments")


class Statements(Protocol):
    """Where statements run: a cursor of psycopg or of Django, in a transaction of the caller's."""

    def execute(self, query: str, params: Sequence[Any] = ..., /) -> Any:
        """One statement."""

    def executemany(self, query: str, params_seq: Sequence[Any], /) -> Any:
        """A statement for each of many."""

    def fetchall(self) -> list[Any]:
        """What the last one found."""


class NotPurged(Exception):
    """The text is still needed; the message says what for."""


def purge_session(statements: Statements, session_id: UUID) -> bool:
    """Purge one session that is at rest; False where it held no text. Raises NotPurged."""
    statements.execute(_STATE, (session_id,))
    ((status, has_text, in_use, in_flight),) = statements.fetchall()
    if status == "open":
        raise NotPurged("The session is open: its next turn is matched with this text. Close it first.")
    if in_use:
        raise NotPurged("An unfinished export or an open handout needs the session.")
    if in_flight:
        raise NotPurged("A reply is in flight; it would bring its text along. Try again in a while.")
    if has_text:
        purge(statements, [session_id])
    return has_text


def purge(statements: Statements, ids: Sequence[UUID]) -> None:
    """Empty what these sessions said, in every table."""
    for statement in _EMPTIED:
        statements.execute(statement + "WHERE session_id = ANY(%s)", (list(ids),))
    _purge_records(statements, ids)
    _purge_heads(statements, ids)
    _purge_spans(statements, ids)
    _purge_origins(statements, ids)
    purge_waiting(statements, ids)
    forget_replays(statements, ids)


def forget_replays(statements: Statements, ids: Sequence[UUID]) -> None:
    """Reports of replays quote what they compared: those that name these sessions go."""
    names = [f"%{session_id.hex}%" for session_id in ids]
    statements.execute("DELETE FROM sessions_app_whatifjob WHERE report LIKE ANY(%s)", (names,))


def _purge_records(statements: Statements, ids: Sequence[UUID]) -> None:
    statements.execute(
        "SELECT session_id, id, response, request_params FROM sessions_app_record WHERE session_id = ANY(%s)",
        (list(ids),),
    )
    statements.executemany(
        "UPDATE sessions_app_record SET response = %s, request_params = %s, client_params = NULL, "
        "raw_reply = NULL, raw_leading = NULL, raw_tail = NULL, error_text = NULL "
        "WHERE session_id = %s AND id = %s",
        [
            (_edited(response, _reply), _edited(params, _parameters), session_id, id)
            for session_id, id, response, params in statements.fetchall()
        ],
    )


def _purge_spans(statements: Statements, ids: Sequence[UUID]) -> None:
    statements.execute(
        "SELECT session_id, id, attributes, events, links FROM trainer_export_span "
        "WHERE session_id = ANY(%s)",
        (list(ids),),
    )
    statements.executemany(
        "UPDATE trainer_export_span SET attributes = %s, events = %s, links = %s, status_description = '' "
        "WHERE session_id = %s AND id = %s",
        [
            (_edited(attributes, _span), _edited(events, _entries), _edited(links, _entries), session_id, id)
            for session_id, id, attributes, events, links in statements.fetchall()
        ],
    )


def _purge_heads(statements: Statements, ids: Sequence[UUID]) -> None:
    """Variables of templates: numbers and switches stay."""
    statements.execute(
        "SELECT session_id, id, template_kwargs FROM sessions_app_requesthead WHERE session_id = ANY(%s)",
        (list(ids),),
    )
    statements.executemany(
        "UPDATE sessions_app_requesthead SET template_kwargs = %s WHERE session_id = %s AND id = %s",
        [
            (_edited(kwargs, _parameters) or "{}", session_id, id)
            for session_id, id, kwargs in statements.fetchall()
        ],
    )


def _purge_origins(statements: Statements, ids: Sequence[UUID]) -> None:
    """What sent the spans: a command line may hold a prompt."""
    statements.execute(
        "SELECT session_id, id, body FROM trainer_export_spanorigin WHERE session_id = ANY(%s)",
        (list(ids),),
    )
    statements.executemany(
        "UPDATE trainer_export_spanorigin SET body = %s WHERE session_id = %s AND id = %s",
        [(_edited(body, _origin) or "{}", session_id, id) for session_id, id, body in statements.fetchall()],
    )


def purge_waiting(statements: Statements, ids: Sequence[UUID]) -> None:
    """Spans of these sessions' traces that belong to no session yet: whose they are only shows later."""
    statements.execute(
        f"SELECT id, body FROM trainer_export_waitingspan WHERE trace_id IN ({_OF_SESSIONS}) FOR UPDATE",
        (list(ids),),
    )
    statements.executemany(
        "UPDATE trainer_export_waitingspan SET body = %s WHERE id = %s",
        [(_edited(body, _waiting), id) for id, body in statements.fetchall()],
    )


def _edited(text: str | None, edit: Callable[[Any], Any]) -> str | None:
    """JSON text after an edit; what cannot be read is not kept."""
    if not text:
        return text
    try:
        return text_of(edit(_read(text)))
    except (InvalidJson, ValueError):
        return None


def _read(text: str) -> Any:
    return loads(text.encode("utf-8", "surrogatepass"))


def _reply(reply: Any) -> Any:
    """A stored reply with what samples read of it, and nothing that anybody said."""
    if not isinstance(reply, dict):
        return None
    kept = {name: reply[name] for name in ("id", "object", "created", "model", "usage") if name in reply}
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    choice = {name: first[name] for name in ("index", "finish_reason") if name in first}
    if "meta_info" in first:
        choice["meta_info"] = _report(first["meta_info"])
    return {**kept, "choices": [choice | {"message": {"role": "assistant", "content": None}}]}


def _report(value: Any, *, told: bool = False) -> Any:
    """What an engine reports of a reply: numbers, switches and a few names. `told`: a text of it may stay."""
    if is_marker(value):
        return value
    if isinstance(value, dict):
        return {name: _report(item, told=name in _TOLD) for name, item in value.items()}
    if isinstance(value, list):
        return [_report(item) for item in value]
    return None if isinstance(value, str) and not told else value


def _parameters(body: Any) -> Any:
    """Numbers, switches and the model's name; null in place of every other text, and of objects whose members
    the client named.
    """
    if not isinstance(body, dict):
        return None
    return {name: item if name == "model" else _parameter(name, item) for name, item in body.items()}


def _parameter(name: str, value: Any) -> Any:
    if is_marker(value):
        return None if value[MARKER] == WRAPPED else value
    if isinstance(value, dict):
        return _parameters(value) if name in _NESTED else None
    if isinstance(value, list):
        return [_parameter(name, item) for item in value]
    return None if isinstance(value, str) else value


def _entries(entries: Any) -> Any:
    """Events or links of a span without what their attributes say."""
    return [{**entry, "attributes": _span(entry.get("attributes") or {})} for entry in entries]


def _waiting(span: Any) -> dict[str, Any]:
    """A waiting span as `_purge_spans` leaves one that has a session."""
    origin = {**span["origin"], "body": _edited(span["origin"]["body"], _origin) or "{}"}
    edited = {name: _edited(span[name], _entries) for name in ("events", "links")}
    attributes = _edited(span["attributes"], _span)
    return {**span, **edited, "attributes": attributes, "status_description": "", "origin": origin}


def _origin(body: Any) -> dict[str, Any]:
    named = {name: _names(body.get(name) or {}) for name in ("resource", "scope_attributes")}
    return {**body, **named}


def _span(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Names, ids and numbers: what a span is of, and the ids and rewards in it."""
    return {**_names(attributes), PURGED: True}


def _names(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if _is_number(value) or _is_name(name)}


def _is_number(value: Any) -> bool:
    """A number, or numbers, also as JSON text (token ids are often sent so)."""
    if isinstance(value, list):
        return all(_is_number(item) for item in value)
    if isinstance(value, str) and value[:1] == "[":
        try:
            return _is_number(_read(value))
        except (InvalidJson, ValueError):
            return False
    return isinstance(value, int | float)


def _is_name(attribute: str) -> bool:
    parts = attribute.split(".")
    return (parts[-1] in _NAMES or parts[-1].endswith("_id")) and not any(part in _SAID for part in parts)
