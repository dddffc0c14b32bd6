from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0018_closed_lists_as_functions'),
    ]

    operations = [
        migrations.AddField(
            model_name='driftfinding',
            name='appears_node_seq',
            field=models.IntegerField(blank=True, help_text='Node with whose turn it appears', null=True),
        ),
    ]
