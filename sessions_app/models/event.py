"""Why the forest is shaped as it is: every fork, rollback, reset, trim and refusal with its cause."""

from django.db import models

from sessions_app.models.choices import CAUSES, EVENT_KINDS, known
from sessions_app.models.session import Session


class HistoryEvent(models.Model):
    """One decision that was not a plain append, with the first difference that made it so."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events", db_index=False)
    record_id = models.BigIntegerField(null=True, blank=True)
    node_seq = models.IntegerField(
        null=True, blank=True, help_text="Node it made; null where nothing was attached"
    )
    kind = models.CharField(max_length=20, choices=EVENT_KINDS)
    cause = models.CharField(max_length=40, choices=CAUSES)
    compared_seq = models.IntegerField(
        null=True, blank=True, help_text="Node whose path the request was compared with"
    )
    message_index = models.IntegerField(null=True, blank=True)
    field = models.TextField(null=True, blank=True)
    stored_value = models.TextField(null=True, blank=True)
    replayed_value = models.TextField(null=True, blank=True)
    char_offset = models.IntegerField(null=True, blank=True)
    token_index = models.IntegerField(null=True, blank=True)
    matcher = models.TextField(null=True, blank=True)
    looser_matcher = models.TextField(null=True, blank=True)
    detail = models.TextField(null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["session", "id"]
        indexes = [
            models.Index(fields=["id"], name="event_id"),
            models.Index(fields=["cause", "at"], name="event_cause"),
            models.Index(fields=["session", "node_seq"], name="event_node"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["session", "id"], name="event_pk"),
            known("event_kind_known", "kind", "event_kind"),
            known("event_cause_known", "cause", "cause"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex} {self.kind} {self.cause}"
