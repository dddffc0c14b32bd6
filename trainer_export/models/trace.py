"""Received spans. Written by `trainer_export.spans`; a span is named by its trace id and its span id.

Invariant: a span stands in one place, either with its session or among those that wait for one; the record
that came first stays.
"""

from django.db import models
from django.db.models import Q

from sessions_app.models import Session


class TracedSession(models.Model):
    """A session that spans were received for: hands out their sequence ids, and says what is left to do."""

    session = models.OneToOneField(
        Session, on_delete=models.CASCADE, primary_key=True, related_name="tracing"
    )
    last_sequence = models.BigIntegerField(default=0, help_text="Highest sequence id given so far")
    received_at = models.DateTimeField(help_text="Latest arrival of a new span")
    labelled_at = models.DateTimeField(
        null=True, blank=True, help_text="Agent names were handed to nodes; null when spans came since"
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["received_at"],
                name="traced_unlabelled",
                condition=Q(labelled_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return self.session_id.hex


class Trace(models.Model):
    """What of one trace belongs to one session, counted as spans arrive."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="traces", db_index=False)
    trace_id = models.CharField(max_length=32)
    name = models.TextField(blank=True, default="", help_text="Of its root, once that has arrived")
    spans = models.IntegerField()
    calls = models.IntegerField(help_text="Spans that record a model call")
    rewards = models.IntegerField(help_text="Spans that carry a reward")
    failed = models.IntegerField(help_text="Spans with status ERROR")
    start_ns = models.BigIntegerField(null=True, blank=True, help_text="Earliest known start")
    end_ns = models.BigIntegerField(null=True, blank=True, help_text="Latest known end")
    first_received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_received_at"]
        indexes = [
            models.Index(fields=["id"], name="trace_row"),
            models.Index(fields=["trace_id"], name="trace_of_id"),
            models.Index(fields=["-last_received_at"], name="trace_received"),
        ]
        constraints = [models.UniqueConstraint(fields=["session", "trace_id"], name="trace_pk")]

    def __str__(self) -> str:
        return self.trace_id


class SpanOrigin(models.Model):
    """Resource and instrumentation scope, stored once for all spans of a session that share them."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="span_origins", db_index=False
    )
    digest = models.BinaryField(help_text="BLAKE2b of the text")
    body = models.TextField(help_text="JSON object: resource and scope")

    class Meta:
        indexes = [models.Index(fields=["id"], name="span_origin_row")]
        constraints = [models.UniqueConstraint(fields=["session", "digest"], name="span_origin_pk")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class Span(models.Model):
    """One recorded operation. Times are nanoseconds since 1970, null where unknown."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="spans", db_index=False)
    trace_id = models.CharField(max_length=32)
    span_id = models.CharField(max_length=16)
    parent_id = models.CharField(max_length=16, null=True, blank=True, help_text="Null for a root")
    name = models.TextField(blank=True)
    kind = models.IntegerField(default=0)
    status_code = models.CharField(max_length=10)
    status_description = models.TextField(blank=True, default="")
    start_ns = models.BigIntegerField(null=True, blank=True)
    end_ns = models.BigIntegerField(
        null=True, blank=True, help_text="May lie before the start: skewed clocks"
    )
    sequence_id = models.BigIntegerField(help_text="Order within the attempt")
    sequence_given = models.BooleanField(help_text="By the sender; else on arrival")
    attributes = models.TextField(help_text="JSON object")
    events = models.TextField(blank=True, default="", help_text="JSON list; empty for none")
    links = models.TextField(blank=True, default="", help_text="JSON list; empty for none")
    origin = models.BinaryField(help_text="SpanOrigin")
    trace_state = models.TextField(blank=True, default="")
    flags = models.BigIntegerField(default=0)
    dropped_attributes = models.BigIntegerField(default=0, help_text="By the SDK: messages are not complete")
    dropped_events = models.BigIntegerField(default=0)
    dropped_links = models.BigIntegerField(default=0)
    is_call = models.BooleanField(help_text="Records a model call")
    is_reward = models.BooleanField(help_text="Carries a reward")
    response_id = models.TextField(null=True, blank=True, help_text="Of the reply that the call got")
    conversation_id = models.TextField(null=True, blank=True, help_text="As the agent's framework names it")
    agent_name = models.TextField(null=True, blank=True, help_text="The agent that this span is of")
    agent = models.TextField(
        null=True, blank=True, help_text="Of a call: the agent it was found to belong to"
    )
    agent_before = models.TextField(
        null=True, blank=True, help_text="What the call's node had been labelled by header or system prompt"
    )
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["session", "sequence_id", "id"]
        indexes = [
            models.Index(fields=["id"], name="span_row"),
            models.Index(
                fields=["session", "response_id"],
                name="span_response",
                condition=Q(response_id__isnull=False),
            ),
        ]
        constraints = [models.UniqueConstraint(fields=["session", "trace_id", "span_id"], name="span_pk")]

    def __str__(self) -> str:
        return f"{self.trace_id}:{self.span_id}"


class WaitingSpan(models.Model):
    """A span that names no rollout, kept until another span of its trace shows where it belongs."""

    trace_id = models.CharField(max_length=32)
    span_id = models.CharField(max_length=16)
    parent_id = models.CharField(max_length=16, null=True, blank=True)
    name = models.TextField(blank=True)
    body = models.TextField(help_text="JSON object: the whole span")
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["received_at"], name="waiting_received")]
        constraints = [models.UniqueConstraint(fields=["trace_id", "span_id"], name="waiting_once")]

    def __str__(self) -> str:
        return f"{self.trace_id}:{self.span_id}"
