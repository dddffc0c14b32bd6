from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0010_data_read'),
    ]

    operations = [
        migrations.AddField(
            model_name='unattachedreply',
            name='logprob_texts',
            field=models.TextField(blank=True, help_text="JSON list of the engine's token texts, if it sent any", null=True),
        ),
        migrations.AddField(
            model_name='unattachedreply',
            name='routed_experts',
            field=models.BinaryField(help_text='Packed little-endian int32', null=True),
        ),
        migrations.AddField(
            model_name='unattachedreply',
            name='routed_experts_start',
            field=models.IntegerField(blank=True, help_text='First row asked for, additional R3', null=True),
        ),
        migrations.AddField(
            model_name='unattachedreply',
            name='indexer_topk',
            field=models.BinaryField(help_text='Packed little-endian int32', null=True),
        ),
    ]
