"""What verify_renderer found of a profile's renderer stands with the profile."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0005_analytics_views")]

    operations = [
        migrations.AddField(
            model_name="modelprofile",
            name="verification_key",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Renderer and parsers that were verified",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="modelprofile",
            name="verification",
            field=models.TextField(
                default="[]",
                help_text="JSON list: the rows of verify_renderer's table",
            ),
        ),
        migrations.AddField(
            model_name="modelprofile",
            name="verified_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
