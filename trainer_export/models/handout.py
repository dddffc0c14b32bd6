"""Finished rollout groups in the order in which they finished, and who has them: `GET /samples/stream`."""

from django.db import models

from trainer_export.models.choices import HANDOUT_STATES


class Handout(models.Model):
    """One rollout group (or a rollout without a sized group), handed out until somebody acknowledges it."""

    unit = models.TextField(unique=True, help_text="Which group or rollout")
    group_id = models.TextField(null=True, blank=True)
    late = models.BooleanField(
        default=False, help_text="A rollout that ended after its group had been complete"
    )
    state = models.CharField(max_length=20, choices=HANDOUT_STATES, default="open")
    completed_at = models.DateTimeField(help_text="When its last rollout ended")
    lease = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    consumer = models.TextField(blank=True, default="")
    deliveries = models.IntegerField(default=0)
    reason = models.TextField(null=True, blank=True, help_text="Why it was dropped")
    settled_at = models.DateTimeField(null=True, blank=True, help_text="Acknowledged or dropped")

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["id"], name="handout_open", condition=models.Q(state="open")),
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.unit} {self.state}"
