"""What belongs to a node refers to it by session and seq, and the node to its session: that the session exists
needs no check of its own for every message, checkpoint and side payload."""

import django.db.models.deletion
from django.db import migrations, models


def unchecked(model: str, related_name: str) -> migrations.AlterField:
    return migrations.AlterField(
        model_name=model,
        name="session",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name=related_name,
            to="sessions_app.session",
        ),
    )


class Migration(migrations.Migration):
    """See module."""

    dependencies = [("sessions_app", "0019_drift_appears")]

    operations = [
        unchecked("message", "messages"),
        unchecked("tokencheckpoint", "checkpoints"),
        unchecked("sidepayload", "side_payloads"),
    ]
