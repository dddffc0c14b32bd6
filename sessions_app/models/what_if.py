"""Replays that were asked for: one row a job, its progress, its report. Belongs to no session."""

import uuid

from django.db import models

from sessions_app.models.choices import WHAT_IF_STATES, known


class WhatIfJob(models.Model):
    """A replay of stored requests under other settings."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=20, choices=WHAT_IF_STATES, default="pending")
    wanted = models.TextField(help_text="JSON object: sessions and changes")
    asked_by = models.CharField(max_length=150, blank=True, default="")
    done = models.IntegerField(default=0, help_text="Sessions replayed")
    total = models.IntegerField(null=True, blank=True, help_text="Sessions in all; null before it began")
    lease = models.UUIDField(null=True, blank=True, help_text="Of the worker that runs it")
    leased_until = models.DateTimeField(
        null=True, blank=True, help_text="Running beyond this moment: its worker has died"
    )
    attempts = models.IntegerField(default=0, db_default=0)
    cancel_requested = models.BooleanField(default=False)
    report = models.TextField(null=True, blank=True, help_text="JSON object, once it is done")
    error_text = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["-created_at"], name="what_if_created"),
            models.Index(
                fields=["created_at"],
                name="what_if_unfinished",
                condition=models.Q(state__in=["pending", "running"]),
            ),
        ]
        constraints = [known("what_if_state_known", "state", "what_if_state")]

    def __str__(self) -> str:
        return f"{self.id.hex} {self.state}"
