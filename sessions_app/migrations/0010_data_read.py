"""Who looked at which session's text in the operator screens."""

from django.db import migrations, models

TABLE = "sessions_app_dataread"
KEY = "(session_id, username, what, hour)"


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0009_session_updates_in_place")]

    operations = [
        migrations.CreateModel(
            name="DataRead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.UUIDField()),
                ("username", models.CharField(max_length=150)),
                ("what", models.CharField(help_text="Page or list", max_length=60)),
                ("hour", models.DateTimeField(help_text="Beginning of the hour")),
                ("reads", models.IntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["id"], name="data_read_id"),
                    models.Index(fields=["last_at"], name="data_read_last"),
                    models.Index(fields=["username", "last_at"], name="data_read_by"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session_id", "username", "what", "hour"), name="data_read_pk"
                    )
                ],
            },
        ),
        migrations.RunSQL(
            f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey, DROP CONSTRAINT data_read_pk, "
            f"ADD CONSTRAINT data_read_pk PRIMARY KEY {KEY}",
            f"ALTER TABLE {TABLE} DROP CONSTRAINT data_read_pk, "
            f"ADD CONSTRAINT data_read_pk UNIQUE {KEY}, ADD PRIMARY KEY (id)",
        ),
    ]
