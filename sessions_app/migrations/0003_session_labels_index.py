"""Sessions are found by label: an index over the labels of those that have any."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0002_keys_lead_with_session")]

    operations = [
        migrations.RunSQL(
            "CREATE INDEX session_labels ON sessions_app_session USING gin ((labels::jsonb) jsonb_path_ops) "
            "WHERE labels <> '{}'",
            "DROP INDEX session_labels",
        )
    ]
