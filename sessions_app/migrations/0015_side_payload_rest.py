"""A replay payload that begins with its parent's is stored as the rest of it. Taken back, each is whole again:
who knows of no rests would take them for all there is."""

from django.db import migrations, models

_WHOLE = """
    UPDATE sessions_app_sidepayload c SET payload = p.payload || c.payload, prefix_bytes = 0
    FROM sessions_app_node n, sessions_app_sidepayload p
    WHERE c.prefix_bytes > 0 AND n.session_id = c.session_id AND n.seq = c.node_seq
      AND p.session_id = c.session_id AND p.node_seq = n.parent_seq AND p.kind = c.kind AND p.prefix_bytes = 0
"""


def whole_again(apps, schema_editor):
    """From the roots down, a generation at a time."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_WHOLE)
        while cursor.rowcount:
            cursor.execute(_WHOLE)


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
        migrations.RunPython(migrations.RunPython.noop, whole_again),
    ]
