"""One agent rollout: its settings (fixed at creation), its lifecycle, its counters (written at commit
only).
"""

import uuid

from django.db import models
from django.db.models import Q

from sessions_app.models.choices import (
    HISTORY_POLICIES,
    ON_NONLINEAR,
    ON_TRUNCATED,
    RETRY_POLICIES,
    SESSION_STATUSES,
    known,
)
from sessions_app.models.profile import ModelProfile


class Session(models.Model):
    """Owns a forest of nodes. `version` grows with every change and never repeats, so it is safe to
    compare.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    profile = models.ForeignKey(ModelProfile, on_delete=models.PROTECT, related_name="sessions")
    history_policy = models.CharField(max_length=20, choices=HISTORY_POLICIES)
    on_nonlinear = models.CharField(max_length=20, choices=ON_NONLINEAR)
    on_truncated = models.CharField(max_length=20, choices=ON_TRUNCATED)
    retry_policy = models.CharField(max_length=20, choices=RETRY_POLICIES)
    message_matcher = models.TextField()
    healing = models.BooleanField(default=True)
    harness = models.CharField(
        max_length=100, null=True, blank=True, help_text="Profile or label named when it was created"
    )
    detected_harness = models.CharField(
        max_length=100, null=True, blank=True, help_text="What the headers of its first committed turn showed"
    )
    rollout_id = models.TextField(null=True, blank=True)
    attempt_id = models.TextField(null=True, blank=True)
    group_id = models.TextField(null=True, blank=True)
    group_size = models.IntegerField(null=True, blank=True)
    labels = models.TextField(default="{}", help_text="JSON object of text labels")
    sampling = models.TextField(
        default="{}", help_text="JSON object of sampling values forced on every request"
    )
    max_context_tokens = models.IntegerField(null=True, blank=True)
    max_turns = models.IntegerField(null=True, blank=True)
    idle_timeout_s = models.FloatField(null=True, blank=True)
    key_hash = models.BinaryField(null=True, max_length=32, help_text="SHA-256 of the session key")

    status = models.CharField(max_length=20, choices=SESSION_STATUSES, default="open")
    finish_status = models.TextField(null=True, blank=True, help_text="What `finish` said, e.g. completed")
    finish_metadata = models.TextField(
        null=True, blank=True, help_text="JSON object that rides on every sample"
    )
    created_at = models.DateTimeField()
    last_activity_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    version = models.BigIntegerField(default=0)
    next_seq = models.IntegerField(default=0, help_text="Nodes committed so far; the next node's seq")
    active_seq = models.IntegerField(null=True, blank=True, help_text="Last node of the active path")
    passthrough = models.BooleanField(
        default=False, help_text="Policy linear gave up healing for this session"
    )
    keyless = models.BooleanField(
        default=False, help_text="A node has no prefix key: attach by walking the paths"
    )

    healed_turns = models.IntegerField(default=0)
    healed_prefix_tokens = models.BigIntegerField(default=0)
    nonlinear = models.IntegerField(default=0)
    close_unresolved = models.IntegerField(default=0)
    forks = models.IntegerField(default=0)
    rollbacks = models.IntegerField(default=0)
    retries = models.IntegerField(default=0)
    resets = models.IntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0, help_text="Ids fed, summed over turns")
    added_tokens = models.BigIntegerField(
        default=0, help_text="Ids tokenised from new messages, summed over turns"
    )
    generated_tokens = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["-created_at"], name="session_created"),
            models.Index(
                fields=["rollout_id"], name="session_rollout", condition=Q(rollout_id__isnull=False)
            ),
            models.Index(fields=["group_id"], name="session_group", condition=Q(group_id__isnull=False)),
            models.Index(fields=["harness", "-created_at"], name="session_harness"),
            models.Index(fields=["history_policy", "-created_at"], name="session_policy"),
            models.Index(fields=["message_matcher", "-created_at"], name="session_matcher"),
            models.Index(fields=["status", "-created_at"], name="session_status"),
            models.Index(
                fields=["-created_at"], name="session_deleted", condition=Q(deleted_at__isnull=False)
            ),
            models.Index(fields=["key_hash"], name="session_key", condition=Q(key_hash__isnull=False)),
            models.Index(
                fields=["created_at"],  # not what a turn changes, or its update would touch every index
                name="session_idle",
                condition=Q(status="open", idle_timeout_s__isnull=False),
            ),
        ]
        constraints = [
            known("session_policy_known", "history_policy", "history_policy"),
            known("session_on_nonlinear_known", "on_nonlinear", "on_nonlinear"),
            known("session_on_truncated_known", "on_truncated", "on_truncated"),
            known("session_retry_policy_known", "retry_policy", "retry_policy"),
            known("session_status_known", "status", "session_status"),
            models.UniqueConstraint(
                fields=["rollout_id", "attempt_id"],
                name="session_one_per_attempt",
                condition=Q(rollout_id__isnull=False, attempt_id__isnull=False, deleted_at__isnull=True),
            ),
            models.CheckConstraint(condition=Q(next_seq__gte=0), name="session_next_seq_not_negative"),
            models.CheckConstraint(
                condition=Q(active_seq__isnull=True) | Q(active_seq__lt=models.F("next_seq")),
                name="session_active_node_exists",
            ),
            models.CheckConstraint(
                condition=Q(group_size__isnull=True) | Q(group_size__gte=1),
                name="session_group_size_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.id.hex
