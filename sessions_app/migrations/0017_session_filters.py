"""The list of sessions finds the rare by index, or that there are none; all of it is set without a turn."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0016_process_leases")]

    operations = [
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["history_policy", "-created_at"], name="session_policy"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["message_matcher", "-created_at"], name="session_matcher"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["status", "-created_at"], name="session_status"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)),
                fields=["-created_at"],
                name="session_deleted",
            ),
        ),
    ]
