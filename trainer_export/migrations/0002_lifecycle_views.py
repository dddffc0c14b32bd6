"""Samples lead with the session id; finished rollouts and complete groups as SQL views, and an index to find them by."""

from django.db import migrations

SAMPLE_KEY = (
    "ALTER TABLE trainer_export_sample DROP CONSTRAINT trainer_export_sample_pkey, DROP CONSTRAINT sample_pk, "
    "ADD CONSTRAINT sample_pk PRIMARY KEY (session_id, sample_id)",
    "ALTER TABLE trainer_export_sample DROP CONSTRAINT sample_pk, "
    "ADD CONSTRAINT sample_pk UNIQUE (session_id, sample_id), ADD PRIMARY KEY (id)",
)

ROLLOUTS = """
CREATE VIEW export_rollouts AS
SELECT coalesce(rollout_id, replace(id::text, '-', '')) AS rollout_id,
       group_id,
       max(group_size) AS group_size,
       count(*) AS sessions,
       count(*) FILTER (WHERE status = 'open') AS open_sessions,
       bool_and(status <> 'open') AS finished,
       CASE WHEN bool_and(status <> 'open') THEN max(finished_at) END AS finished_at
FROM sessions_app_session
GROUP BY 1, 2
"""

GROUPS = """
CREATE VIEW export_groups AS
SELECT group_id,
       max(group_size) AS group_size,
       count(*) AS rollouts,
       count(*) FILTER (WHERE finished) AS finished_rollouts,
       count(*) FILTER (WHERE finished) >= max(group_size) AS complete
FROM export_rollouts
WHERE group_id IS NOT NULL
GROUP BY 1
"""

COMMENTS = {
    "VIEW export_rollouts": "Rollouts: all sessions (attempts) with one rollout_id; a session without one is its own rollout.",
    "COLUMN export_rollouts.finished": "None of its sessions is open: each was finished, deleted, or reaped as idle.",
    "VIEW export_groups": "Groups of rollouts of one prompt.",
    "COLUMN export_groups.complete": "group_size rollouts are finished; null where no session named a group_size.",
}


class Migration(migrations.Migration):
    dependencies = [
        ("trainer_export", "0001_exports"),
        ("sessions_app", "0002_keys_lead_with_session"),
    ]

    operations = [
        migrations.RunSQL(*SAMPLE_KEY),
        migrations.RunSQL(
            "CREATE INDEX session_finished ON sessions_app_session (finished_at) WHERE finished_at IS NOT NULL",
            "DROP INDEX session_finished",
        ),
        migrations.RunSQL(ROLLOUTS, "DROP VIEW export_rollouts"),
        migrations.RunSQL(GROUPS, "DROP VIEW export_groups"),
        *(
            migrations.RunSQL([(f"COMMENT ON {name} IS %s", [text])], migrations.RunSQL.noop)
            for name, text in COMMENTS.items()
        ),
    ]
