"""Primary keys that begin with the session id, and foreign keys within a session.

Django's single-column primary keys become plain indexes; the natural keys take their place under the constraint names
that the models declare, so that the session id can be the distribution column of a sharded database.
"""

from django.db import migrations

NATURAL_KEYS = [
    ("sessions_app_node", "node_pk", "seq"),
    ("sessions_app_message", "message_pk", "node_seq, position"),
    ("sessions_app_tokencheckpoint", "checkpoint_pk", "node_seq"),
    ("sessions_app_sidepayload", "side_payload_pk", "node_seq, kind"),
    ("sessions_app_requesthead", "head_pk", "digest"),
    ("sessions_app_record", "record_pk", "id"),
    ("sessions_app_unattachedreply", "unattached_pk", "record_id"),
    ("sessions_app_idempotencyclaim", "claim_pk", "key"),
    ("sessions_app_historyevent", "event_pk", "id"),
    ("sessions_app_reward", "reward_pk", "id"),
]

WITHIN_SESSION = [
    ("sessions_app_node", "node_parent_exists", "parent_seq", "sessions_app_node", "seq"),
    ("sessions_app_message", "message_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_tokencheckpoint", "checkpoint_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_sidepayload", "side_payload_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_record", "record_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_historyevent", "event_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_reward", "reward_node_exists", "node_seq", "sessions_app_node", "seq"),
    ("sessions_app_unattachedreply", "unattached_record_exists", "record_id", "sessions_app_record", "id"),
    ("sessions_app_node", "node_head_exists", "head_digest", "sessions_app_requesthead", "digest"),
]


def natural_key(table: str, name: str, columns: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, DROP CONSTRAINT {name}, "
        f"ADD CONSTRAINT {name} PRIMARY KEY (session_id, {columns})",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}, "
        f"ADD CONSTRAINT {name} UNIQUE (session_id, {columns}), ADD PRIMARY KEY (id)",
    )


def within_session(table: str, name: str, column: str, target: str, target_column: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (session_id, {column}) "
        f"REFERENCES {target} (session_id, {target_column}) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_forest")]

    operations = [
        *(natural_key(*key) for key in NATURAL_KEYS),
        *(within_session(*key) for key in WITHIN_SESSION),
    ]
