"""Input of exports and handouts, frozen: which session, as it stood at which node."""

from django.db import models
from django.db.models import Q

from trainer_export.models.handout import Handout
from trainer_export.models.job import ExportJob


class FrozenSession(models.Model):
    """A session at one `next_seq`. Survives the session, so that what is missing can be told."""

    job = models.ForeignKey(ExportJob, on_delete=models.CASCADE, null=True, related_name="inputs")
    shard = models.IntegerField(null=True, blank=True)
    handout = models.ForeignKey(Handout, on_delete=models.CASCADE, null=True, related_name="inputs")
    position = models.IntegerField(help_text="Order of the rows")
    session_id = models.UUIDField()
    unit = models.TextField(help_text="Rollout group; the rows of one never stand in two shards")
    rollout_id = models.TextField()
    next_seq = models.IntegerField(help_text="Nodes that count; later ones are not in the export")
    active_seq = models.IntegerField(null=True, blank=True)
    finished = models.BooleanField(help_text="It had ended: the metadata of its `finish` counts")
    healer = models.TextField(help_text="JSON list: the four healer counters")

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["session_id"], name="frozen_session"),
            models.Index(fields=["job", "shard", "position"], name="frozen_shard"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(job__isnull=True, handout__isnull=False)
                | Q(job__isnull=False, handout__isnull=True),
                name="frozen_for_one_purpose",
            ),
            models.UniqueConstraint(fields=["job", "position"], name="frozen_once_a_job"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex} at {self.next_seq}"
