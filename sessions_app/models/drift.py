"""What the drift audit found: the served ids of a path against a fresh render of its stored messages."""

from django.db import models
from django.db.models import Q

from sessions_app.models.choices import DRIFT_OUTCOMES, known
from sessions_app.models.node import Node
from sessions_app.models.session import Session


class DriftFinding(models.Model):
    """The audit of the path that ends at a node; one under another renderer takes its place."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="drift", db_index=False)
    node_seq = models.IntegerField(help_text="Node that the path ends at")
    node = models.ForeignObject(
        Node,
        on_delete=models.DO_NOTHING,
        from_fields=["session", "node_seq"],
        to_fields=["session", "seq"],
        related_name="drift",
    )
    renderer = models.CharField(max_length=100, help_text="Name of the renderer it was compared with")
    renderer_fingerprint = models.CharField(max_length=64)
    template_fingerprint = models.CharField(max_length=64, help_text="Template that served the path")
    outcome = models.CharField(max_length=20, choices=DRIFT_OUTCOMES)
    reason = models.TextField(null=True, blank=True, help_text="Why nothing can be said")
    special_token_count = models.IntegerField(default=0)
    special_token_type = models.IntegerField(default=0)
    assistant_text = models.IntegerField(default=0, help_text="Expected after healing")
    non_assistant_text = models.IntegerField(default=0)
    template_mismatch = models.BooleanField(default=False, help_text="The special tokens differ")
    retoken_mismatch = models.BooleanField(default=False, help_text="The same text in other ids")
    others_mismatch = models.BooleanField(default=False, help_text="The text differs")
    first_token = models.IntegerField(null=True, blank=True, help_text="First id of the path that differs")
    first_node_seq = models.IntegerField(null=True, blank=True, help_text="Node that this id is of")
    appears_node_seq = models.IntegerField(null=True, blank=True, help_text="Node with whose turn it appears")
    details = models.TextField(default="[]", help_text="JSON list: the first differences, texts cut")
    served_tokens = models.IntegerField(default=0)
    fresh_tokens = models.IntegerField(default=0)
    audited_at = models.DateTimeField()

    class Meta:
        ordering = ["session", "node_seq"]
        indexes = [
            models.Index(fields=["id"], name="drift_id"),
            models.Index(fields=["outcome", "audited_at"], name="drift_outcome"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["session", "node_seq"], name="drift_pk"),
            known("drift_outcome_known", "outcome", "drift_outcome"),
            models.CheckConstraint(
                condition=Q(outcome="unknown", reason__isnull=False)
                | (~Q(outcome="unknown") & Q(reason__isnull=True)),
                name="drift_unknown_has_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex}:{self.node_seq} {self.outcome}"
