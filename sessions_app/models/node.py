"""The forest: nodes, the messages and the tokens each adds to its parent. Append-only; only deltas are
stored. What belongs to a node refers to it by session and seq; only the node refers to the session.
"""

from django.db import models
from django.db.models import F, Q

from sessions_app.models.choices import ATTACH_KINDS, CAUSES, FINISH_REASONS, known
from sessions_app.models.session import Session


class Node(models.Model):
    """The end of one generation. `seq` is its public id: commit order within the session, from 0."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="nodes", db_index=False)
    seq = models.IntegerField()
    parent_seq = models.IntegerField(null=True, blank=True, help_text="Null for a root")
    parent = models.ForeignObject(
        "self",
        on_delete=models.DO_NOTHING,
        from_fields=["session", "parent_seq"],
        to_fields=["session", "seq"],
        related_name="children",
        null=True,
    )
    root_seq = models.IntegerField()
    depth = models.IntegerField(help_text="Nodes above this one")
    message_start = models.IntegerField(help_text="Position of the first message this node adds")
    message_count = models.IntegerField(help_text="Messages of the whole path, reply included")
    prefix_key = models.BinaryField(
        null=True, help_text="Chained matcher key of the path's messages, reply included"
    )
    request_key = models.BinaryField(null=True, help_text="The same without the reply: equal for retries")
    raw_digest = models.BinaryField(
        help_text="Chained digest of the request's messages as the client spelled them"
    )
    head_digest = models.BinaryField(help_text="RequestHead of its request")
    head_identity = models.BinaryField(help_text="What the engine sees at the head; differs = never reused")
    context_digest = models.BinaryField(help_text="Chained digest of every id fed and sampled up to here")
    attach_kind = models.CharField(max_length=20, choices=ATTACH_KINDS)
    cause = models.CharField(max_length=40, choices=CAUSES, null=True, blank=True)
    retry_of = models.IntegerField(
        null=True, blank=True, help_text="Seq of the node whose request was sent again"
    )
    root_class = models.CharField(max_length=20, null=True, blank=True)
    root_evidence = models.TextField(null=True, blank=True)
    agent = models.TextField(null=True, blank=True)
    model_name = models.TextField(null=True, blank=True, help_text="Model that the request named")
    adapter_name = models.TextField(null=True, blank=True, help_text="Adapter that the request named")
    response_id = models.TextField(null=True, blank=True)
    finish_reason = models.CharField(max_length=20, choices=FINISH_REASONS, blank=True)
    raw_finish_reason = models.TextField(null=True, blank=True)
    ill_formed = models.BooleanField(default=False)
    prompt_tokens = models.IntegerField(help_text="Ids fed for this generation")
    total_tokens = models.IntegerField(help_text="prompt_tokens plus the completion")
    weight_version_dispatch = models.TextField(null=True, blank=True)
    weight_version = models.TextField(null=True, blank=True, help_text="As the engine reported it")
    record_id = models.BigIntegerField()
    committed_at = models.DateTimeField()

    class Meta:
        ordering = ["session", "seq"]
        indexes = [
            models.Index(fields=["id"], name="node_id"),
            models.Index(fields=["session", "prefix_key"], name="node_prefix"),
            models.Index(fields=["session", "request_key"], name="node_request"),
            models.Index(fields=["session", "parent_seq"], name="node_parent"),
            models.Index(fields=["response_id"], name="node_response"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="node_pk"),
            known("node_attach_kind_known", "attach_kind", "attach_kind"),
            known("node_cause_known", "cause", "cause"),
            models.CheckConstraint(
                condition=Q(parent_seq__isnull=True) | Q(parent_seq__lt=F("seq")), name="node_parent_first"
            ),
            models.CheckConstraint(
                condition=Q(parent_seq__isnull=True, depth=0, message_start=0, root_seq=F("seq"))
                | Q(parent_seq__isnull=False, depth__gt=0, message_start__gt=0),
                name="node_root_or_child",
            ),
            models.CheckConstraint(
                condition=Q(message_count__gt=F("message_start")), name="node_adds_a_message"
            ),
            models.CheckConstraint(
                condition=Q(total_tokens__gte=F("prompt_tokens")), name="node_token_totals"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex}:{self.seq}"


class Message(models.Model):
    """One message that a node added, as JSON text exactly as it was sent (or as the engine answered)."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="messages", db_index=False, db_constraint=False
    )
    node_seq = models.IntegerField()
    position = models.IntegerField(help_text="Index in the path's message list, from 0")
    node = models.ForeignObject(
        Node,
        on_delete=models.DO_NOTHING,
        from_fields=["session", "node_seq"],
        to_fields=["session", "seq"],
        related_name="messages",
    )
    role = models.CharField(max_length=40)
    generated = models.BooleanField(default=False, help_text="The engine's reply of this node")
    body = models.TextField(help_text="JSON text")
    sidecar = models.TextField(
        null=True, blank=True, help_text="What its protocol said beyond the canonical form"
    )

    class Meta:
        ordering = ["session", "node_seq", "position"]
        indexes = [models.Index(fields=["id"], name="message_id")]
        constraints = [models.UniqueConstraint(fields=["session", "node_seq", "position"], name="message_pk")]

    def __str__(self) -> str:
        return f"{self.session_id.hex}:{self.node_seq}[{self.position}] {self.role}"


class TokenCheckpoint(models.Model):
    """The token delta of a node: parent's tokens minus `boundary_trim`, then the prompt delta, then the
    completion.
    """

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="checkpoints", db_index=False, db_constraint=False
    )
    node_seq = models.IntegerField()
    node = models.ForeignObject(
        Node,
        on_delete=models.DO_NOTHING,
        from_fields=["session", "node_seq"],
        to_fields=["session", "seq"],
        related_name="checkpoints",
    )
    boundary_trim = models.SmallIntegerField(default=0)
    glue_tokens = models.SmallIntegerField(
        default=0, help_text="Leading ids of the prompt delta that closed the last turn"
    )
    prompt_delta = models.BinaryField(help_text="Packed little-endian int32")
    completion = models.BinaryField(help_text="Packed little-endian int32")
    logprobs = models.BinaryField(help_text="Packed little-endian floats, one per completion id")
    logprob_width = models.SmallIntegerField(help_text="4 where every value survives float32, else 8")
    logprob_texts = models.TextField(
        null=True, blank=True, help_text="JSON list of the engine's token texts, if it sent any"
    )

    class Meta:
        ordering = ["session", "node_seq"]
        indexes = [models.Index(fields=["id"], name="checkpoint_id")]
        constraints = [
            models.UniqueConstraint(fields=["session", "node_seq"], name="checkpoint_pk"),
            models.CheckConstraint(condition=Q(logprob_width__in=(4, 8)), name="checkpoint_logprob_width"),
            models.CheckConstraint(condition=Q(boundary_trim__gte=0), name="checkpoint_trim_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex}:{self.node_seq}"


class SidePayload(models.Model):
    """Riders of a generation too large for the hot row: routed experts, indexer rows."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="side_payloads", db_index=False, db_constraint=False
    )
    node_seq = models.IntegerField()
    kind = models.CharField(max_length=40)
    payload = models.BinaryField(help_text="Packed little-endian int32")
    start_row = models.IntegerField(null=True, blank=True, help_text="First row asked for, additional R3")
    layers = models.IntegerField(null=True, blank=True)
    prefix_bytes = models.BigIntegerField(
        default=0, db_default=0, help_text="Bytes of the parent's payload that belong before this one"
    )
    digest = models.BinaryField(
        null=True, blank=True, help_text="SHA-256 of the whole payload; null for rows asked for in part"
    )

    class Meta:
        ordering = ["session", "node_seq", "kind"]
        indexes = [models.Index(fields=["id"], name="side_payload_id")]
        constraints = [
            models.UniqueConstraint(fields=["session", "node_seq", "kind"], name="side_payload_pk")
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex}:{self.node_seq} {self.kind}"
