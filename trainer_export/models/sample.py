"""Which rows were handed to training, so that what is reported later can mark them stale."""

from django.db import models

from sessions_app.models import Session
from trainer_export.models.choices import HANDED_BY
from trainer_export.models.job import ExportJob


class Sample(models.Model):
    """A row as it was handed out last. The tokens stay in the forest; this is only what became of them."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="samples", db_index=False)
    sample_id = models.TextField(help_text="session:leaf, the same at every export")
    leaf_seq = models.IntegerField()
    next_seq = models.IntegerField(help_text="Nodes of the session that were looked at")
    rollout_id = models.TextField()
    group_id = models.TextField(null=True, blank=True)
    via = models.CharField(max_length=20, choices=HANDED_BY)
    job = models.ForeignKey(
        ExportJob, on_delete=models.SET_NULL, null=True, blank=True, related_name="samples"
    )
    status = models.CharField(max_length=20)
    tokens = models.IntegerField()
    trained_tokens = models.IntegerField()
    reward = models.FloatField(null=True, blank=True, help_text="Null also where the reward is no number")
    handed_at = models.DateTimeField()
    stale_at = models.DateTimeField(null=True, blank=True)
    stale_reason = models.CharField(max_length=40, null=True, blank=True)

    class Meta:
        ordering = ["session", "id"]
        indexes = [
            models.Index(fields=["id"], name="sample_id"),
            models.Index(
                fields=["stale_at"], name="sample_stale", condition=models.Q(stale_at__isnull=False)
            ),
        ]
        constraints = [models.UniqueConstraint(fields=["session", "sample_id"], name="sample_pk")]

    def __str__(self) -> str:
        return self.sample_id
