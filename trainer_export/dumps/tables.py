"""What belongs to a session, in the order in which it can be put back."""

from dataclasses import dataclass

SCHEMA = "tito.session-dump/1"


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the dump."""

    name: str
    """As in the dump."""
    table: str
    order: str
    left_out: frozenset[str] = frozenset({"id"})
    """Surrogates, which the receiving database gives anew, and secrets."""


SESSION = Table("session", "sessions_app_session", "id", frozenset({"id", "profile_id", "key_hash"}))
TABLES = (
    Table("head", "sessions_app_requesthead", "id"),
    Table("record", "sessions_app_record", "id", frozenset()),
    Table("node", "sessions_app_node", "seq"),
    Table("message", "sessions_app_message", "node_seq, position"),
    Table("checkpoint", "sessions_app_tokencheckpoint", "node_seq"),
    Table("side", "sessions_app_sidepayload", "node_seq, kind"),
    Table("event", "sessions_app_historyevent", "id"),
    Table("unattached", "sessions_app_unattachedreply", "record_id"),
    Table("reward", "sessions_app_reward", "id"),
    Table("tracing", "trainer_export_tracedsession", "session_id"),
    Table("span_origin", "trainer_export_spanorigin", "id"),
    Table("trace", "trainer_export_trace", "id"),
    Table("span", "trainer_export_span", "id"),
)
"""Records keep their ids in the file, so that others can refer to them; where they arrive they get new ones.
"""
