"""What the drift audit found, one row a node; the primary key begins with the session id."""

import django.db.models.deletion
from django.db import migrations, models

OUTCOMES = ["same", "expected", "defect", "unknown"]
TABLE = "sessions_app_driftfinding"


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0006_profile_verification")]

    operations = [
        migrations.CreateModel(
            name="DriftFinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node_seq", models.IntegerField(help_text="Node that the path ends at")),
                (
                    "renderer",
                    models.CharField(help_text="Name of the renderer it was compared with", max_length=100),
                ),
                ("renderer_fingerprint", models.CharField(max_length=64)),
                (
                    "template_fingerprint",
                    models.CharField(help_text="Template that served the path", max_length=64),
                ),
                (
                    "outcome",
                    models.CharField(choices=[(name, name) for name in OUTCOMES], max_length=20),
                ),
                (
                    "reason",
                    models.TextField(blank=True, help_text="Why nothing can be said", null=True),
                ),
                ("special_token_count", models.IntegerField(default=0)),
                ("special_token_type", models.IntegerField(default=0)),
                ("assistant_text", models.IntegerField(default=0, help_text="Expected after healing")),
                ("non_assistant_text", models.IntegerField(default=0)),
                (
                    "template_mismatch",
                    models.BooleanField(default=False, help_text="The special tokens differ"),
                ),
                (
                    "retoken_mismatch",
                    models.BooleanField(default=False, help_text="The same text in other ids"),
                ),
                ("others_mismatch", models.BooleanField(default=False, help_text="The text differs")),
                (
                    "first_token",
                    models.IntegerField(
                        blank=True, help_text="First id of the path that differs", null=True
                    ),
                ),
                (
                    "first_node_seq",
                    models.IntegerField(blank=True, help_text="Node that this id is of", null=True),
                ),
                (
                    "details",
                    models.TextField(
                        default="[]", help_text="JSON list: the first differences, texts cut"
                    ),
                ),
                ("served_tokens", models.IntegerField(default=0)),
                ("fresh_tokens", models.IntegerField(default=0)),
                ("audited_at", models.DateTimeField()),
                (
                    "node",
                    models.ForeignObject(
                        from_fields=["session", "node_seq"],
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="drift",
                        to="sessions_app.node",
                        to_fields=["session", "seq"],
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drift",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "ordering": ["session", "node_seq"],
                "indexes": [
                    models.Index(fields=["id"], name="drift_id"),
                    models.Index(fields=["outcome", "audited_at"], name="drift_outcome"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "node_seq"), name="drift_pk"),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", OUTCOMES)), name="drift_outcome_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(outcome="unknown", reason__isnull=False)
                        | (~models.Q(outcome="unknown") & models.Q(reason__isnull=True)),
                        name="drift_unknown_has_a_reason",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey, DROP CONSTRAINT drift_pk, "
            "ADD CONSTRAINT drift_pk PRIMARY KEY (session_id, node_seq)",
            f"ALTER TABLE {TABLE} DROP CONSTRAINT drift_pk, "
            "ADD CONSTRAINT drift_pk UNIQUE (session_id, node_seq), ADD PRIMARY KEY (id)",
        ),
        migrations.RunSQL(
            f"ALTER TABLE {TABLE} ADD CONSTRAINT drift_node_exists FOREIGN KEY (session_id, node_seq) "
            "REFERENCES sessions_app_node (session_id, seq) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            f"ALTER TABLE {TABLE} DROP CONSTRAINT drift_node_exists",
        ),
    ]
