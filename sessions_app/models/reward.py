"""Rewards of a session, a leaf or one node, as drivers reported them."""

from django.db import models

from sessions_app.models.session import Session


class Reward(models.Model):
    """One reported value. Reported again under the same key it replaces nothing: first report wins."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="rewards", db_index=False)
    node_seq = models.IntegerField(null=True, blank=True, help_text="Null: the whole session")
    name = models.CharField(max_length=100, default="reward")
    value = models.FloatField()
    weight = models.FloatField(default=1.0)
    source = models.CharField(max_length=100, default="api")
    key = models.TextField(help_text="Idempotency key of the report")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["session", "id"]
        indexes = [models.Index(fields=["id"], name="reward_id")]
        constraints = [
            models.UniqueConstraint(fields=["session", "id"], name="reward_pk"),
            models.UniqueConstraint(fields=["session", "key"], name="reward_once"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex} {self.name}={self.value}"
