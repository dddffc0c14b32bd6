from django.db import migrations, models

USUAL = (("tool_parser", "qwen3"), ("reasoning_parser", "think"))


def unset(apps, schema_editor):
    """Families refuse parsers that disagree with them; the former default was nobody's choice."""
    profiles = apps.get_model("sessions_app", "ModelProfile").objects.filter(renderer__startswith="template:")
    for column, usual in USUAL:
        profiles.filter(**{column: usual}).update(**{column: ""})


def spelled(apps, schema_editor):
    profiles = apps.get_model("sessions_app", "ModelProfile").objects.all()
    for column, usual in USUAL:
        profiles.filter(**{column: ""}).update(**{column: usual})


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0013_refused_requests_kept'),
    ]

    operations = [
        migrations.AlterField(
            model_name='modelprofile',
            name='tool_parser',
            field=models.CharField(blank=True, default='', help_text="Empty: the renderer's family's, else qwen3", max_length=100),
        ),
        migrations.AlterField(
            model_name='modelprofile',
            name='reasoning_parser',
            field=models.CharField(blank=True, default='', help_text="Empty: the renderer's family's, else think", max_length=100),
        ),
        migrations.RunPython(unset, spelled),
    ]
