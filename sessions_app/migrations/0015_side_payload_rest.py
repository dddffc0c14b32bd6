"""A replay payload that begins with its parent's is stored as the rest of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0014_parsers_by_family")]

    operations = [
        migrations.AddField(
            model_name="sidepayload",
            name="prefix_bytes",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="Bytes of the parent's payload that belong before this one",
            ),
        ),
        migrations.AddField(
            model_name="sidepayload",
            name="digest",
            field=models.BinaryField(
                blank=True,
                help_text="SHA-256 of the whole payload; null for rows asked for in part",
                null=True,
            ),
        ),
    ]
