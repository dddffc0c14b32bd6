"""Tables of received spans. Like all tables of a session they lead with its id: natural keys take the place of Django's
single-column primary keys, under the constraint names that the models declare.
"""

import django.db.models.deletion
from django.db import migrations, models

NATURAL_KEYS = [
    ("trainer_export_span", "span_pk", "trace_id, span_id"),
    ("trainer_export_spanorigin", "span_origin_pk", "digest"),
    ("trainer_export_trace", "trace_pk", "trace_id"),
]


def natural_key(table, name, columns):
    return migrations.RunSQL(
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, DROP CONSTRAINT {name}, "
        f"ADD CONSTRAINT {name} PRIMARY KEY (session_id, {columns})",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}, "
        f"ADD CONSTRAINT {name} UNIQUE (session_id, {columns}), ADD PRIMARY KEY (id)",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0003_session_labels_index'),
        ('trainer_export', '0002_lifecycle_views'),
    ]

    operations = [
        migrations.CreateModel(
            name='TracedSession',
            fields=[
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='tracing', serialize=False, to='sessions_app.session')),
                ('last_sequence', models.BigIntegerField(default=0, help_text='Highest sequence id given so far')),
                ('received_at', models.DateTimeField(help_text='Latest arrival of a new span')),
                ('labelled_at', models.DateTimeField(blank=True, help_text='Agent names were handed to nodes; null when spans came since', null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('labelled_at__isnull', True)), fields=['received_at'], name='traced_unlabelled')],
            },
        ),
        migrations.CreateModel(
            name='WaitingSpan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trace_id', models.CharField(max_length=32)),
                ('span_id', models.CharField(max_length=16)),
                ('parent_id', models.CharField(blank=True, max_length=16, null=True)),
                ('name', models.TextField(blank=True)),
                ('body', models.TextField(help_text='JSON object: the whole span')),
                ('received_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['received_at'], name='waiting_received')],
                'constraints': [models.UniqueConstraint(fields=('trace_id', 'span_id'), name='waiting_once')],
            },
        ),
        migrations.CreateModel(
            name='Span',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trace_id', models.CharField(max_length=32)),
                ('span_id', models.CharField(max_length=16)),
                ('parent_id', models.CharField(blank=True, help_text='Null for a root', max_length=16, null=True)),
                ('name', models.TextField(blank=True)),
                ('kind', models.IntegerField(default=0)),
                ('status_code', models.CharField(max_length=10)),
                ('status_description', models.TextField(blank=True, default='')),
                ('start_ns', models.BigIntegerField(blank=True, null=True)),
                ('end_ns', models.BigIntegerField(blank=True, help_text='May lie before the start: skewed clocks', null=True)),
                ('sequence_id', models.BigIntegerField(help_text='Order within the attempt')),
                ('sequence_given', models.BooleanField(help_text='By the sender; else on arrival')),
                ('attributes', models.TextField(help_text='JSON object')),
                ('events', models.TextField(blank=True, default='', help_text='JSON list; empty for none')),
                ('links', models.TextField(blank=True, default='', help_text='JSON list; empty for none')),
                ('origin', models.BinaryField(help_text='SpanOrigin')),
                ('trace_state', models.TextField(blank=True, default='')),
                ('flags', models.BigIntegerField(default=0)),
                ('dropped_attributes', models.BigIntegerField(default=0, help_text='By the SDK: messages are not complete')),
                ('dropped_events', models.BigIntegerField(default=0)),
                ('dropped_links', models.BigIntegerField(default=0)),
                ('is_call', models.BooleanField(help_text='Records a model call')),
                ('is_reward', models.BooleanField(help_text='Carries a reward')),
                ('response_id', models.TextField(blank=True, help_text='Of the reply that the call got', null=True)),
                ('conversation_id', models.TextField(blank=True, help_text="As the agent's framework names it", null=True)),
                ('agent_name', models.TextField(blank=True, help_text='The agent that this span is of', null=True)),
                ('agent', models.TextField(blank=True, help_text='Of a call: the agent it was found to belong to', null=True)),
                ('agent_before', models.TextField(blank=True, help_text="What the call's node had been labelled by header or system prompt", null=True)),
                ('received_at', models.DateTimeField()),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='spans', to='sessions_app.session')),
            ],
            options={
                'ordering': ['session', 'sequence_id', 'id'],
                'indexes': [models.Index(fields=['id'], name='span_row'), models.Index(condition=models.Q(('response_id__isnull', False)), fields=['session', 'response_id'], name='span_response')],
                'constraints': [models.UniqueConstraint(fields=('session', 'trace_id', 'span_id'), name='span_pk')],
            },
        ),
        migrations.CreateModel(
            name='SpanOrigin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.BinaryField(help_text='BLAKE2b of the text')),
                ('body', models.TextField(help_text='JSON object: resource and scope')),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='span_origins', to='sessions_app.session')),
            ],
            options={
                'indexes': [models.Index(fields=['id'], name='span_origin_row')],
                'constraints': [models.UniqueConstraint(fields=('session', 'digest'), name='span_origin_pk')],
            },
        ),
        migrations.CreateModel(
            name='Trace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trace_id', models.CharField(max_length=32)),
                ('name', models.TextField(blank=True, default='', help_text='Of its root, once that has arrived')),
                ('spans', models.IntegerField()),
                ('calls', models.IntegerField(help_text='Spans that record a model call')),
                ('rewards', models.IntegerField(help_text='Spans that carry a reward')),
                ('failed', models.IntegerField(help_text='Spans with status ERROR')),
                ('start_ns', models.BigIntegerField(blank=True, help_text='Earliest known start', null=True)),
                ('end_ns', models.BigIntegerField(blank=True, help_text='Latest known end', null=True)),
                ('first_received_at', models.DateTimeField()),
                ('last_received_at', models.DateTimeField()),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='traces', to='sessions_app.session')),
            ],
            options={
                'ordering': ['-last_received_at'],
                'indexes': [models.Index(fields=['id'], name='trace_row'), models.Index(fields=['trace_id'], name='trace_of_id'), models.Index(fields=['-last_received_at'], name='trace_received')],
                'constraints': [models.UniqueConstraint(fields=('session', 'trace_id'), name='trace_pk')],
            },
        ),
        *(natural_key(*key) for key in NATURAL_KEYS),
    ]
