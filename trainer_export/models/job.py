"""Export jobs and their shards. The rows are the truth; a message to a worker only says "look"."""

import uuid

from django.db import models

from trainer_export.models.choices import (
    FORMAT_CHOICES,
    JOB_SOURCES,
    JOB_STATES,
    SHAPE_CHOICES,
    SHARD_STATES,
)


class ExportJob(models.Model):
    """One export: what is wanted, what of it was frozen as input, what came of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=20, choices=JOB_STATES, default="pending")
    source = models.CharField(max_length=20, choices=JOB_SOURCES, default="api")
    destination = models.TextField(help_text="Folder or fsspec URL that the shards are published in")
    format = models.CharField(max_length=20, choices=FORMAT_CHOICES)
    shape = models.CharField(max_length=20, choices=SHAPE_CHOICES)
    filters = models.TextField(default="{}", help_text="JSON object: which sessions")
    rules = models.TextField(
        default="{}", help_text="JSON object: picker, post-processor, budget, size of a shard"
    )
    sessions = models.IntegerField(null=True, blank=True, help_text="Frozen as input; null before that")
    shard_count = models.IntegerField(null=True, blank=True)
    rows = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    trained_tokens = models.BigIntegerField(default=0)
    report = models.TextField(null=True, blank=True, help_text="JSON object, once the job is done")
    cancel_requested = models.BooleanField(default=False)
    error_text = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField()
    frozen_at = models.DateTimeField(
        null=True, blank=True, help_text="Rewards and finishes after this moment are not in the export"
    )
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["-created_at"], name="export_created"),
            models.Index(
                fields=["created_at"],
                name="export_unfinished",
                condition=models.Q(state__in=["pending", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id.hex} {self.state}"


class ExportShard(models.Model):
    """One file of an export. Whoever holds the lease writes it; anybody may write it again, to the same
    bytes.
    """

    job = models.ForeignKey(ExportJob, on_delete=models.CASCADE, related_name="shards")
    number = models.IntegerField()
    state = models.CharField(max_length=20, choices=SHARD_STATES, default="pending")
    lease = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    sessions = models.IntegerField()
    name = models.TextField(help_text="File name within the destination")
    digest = models.CharField(max_length=64, blank=True, default="", help_text="SHA-256 of the file")
    size = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    trained_tokens = models.BigIntegerField(default=0)
    report = models.TextField(null=True, blank=True, help_text="JSON object, once the shard is written")
    error_text = models.TextField(null=True, blank=True, help_text="What the last attempt ran into")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["job", "number"]
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="export_shard_number")]

    def __str__(self) -> str:
        return f"{self.job_id.hex} {self.name} {self.state}"
