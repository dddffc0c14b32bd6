"""A turn updates its session's row in place: no index covers what a turn changes, and pages keep room for it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0008_what_if_job")]

    operations = [
        migrations.RemoveIndex(model_name="session", name="session_idle"),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["created_at"],
                name="session_idle",
                condition=models.Q(("idle_timeout_s__isnull", False), ("status", "open")),
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE sessions_app_session SET (fillfactor = 70)",
            "ALTER TABLE sessions_app_session RESET (fillfactor)",
        ),
    ]
