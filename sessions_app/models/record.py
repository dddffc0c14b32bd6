"""One row per request, whether or not it reached the tree, and what belongs to requests."""

from django.db import models

from sessions_app.models.choices import ATTACH_KINDS, CAUSES, RECORD_STATES, known
from sessions_app.models.session import Session


class RequestHead(models.Model):
    """Tools and template kwargs of requests, stored once per session and spelling."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="heads", db_index=False)
    digest = models.BinaryField(help_text="Digest of everything below as sent")
    identity = models.BinaryField(help_text="Digest of what the engine sees at the head")
    tools = models.TextField(
        null=True, blank=True, help_text="JSON text as sent; null when the request named none"
    )
    template_kwargs = models.TextField(default="{}", help_text="Effective kwargs, JSON object")
    template_fingerprint = models.CharField(max_length=64)
    tokenizer_fingerprint = models.CharField(max_length=64)

    class Meta:
        ordering = ["session", "id"]
        indexes = [models.Index(fields=["id"], name="head_id")]
        constraints = [models.UniqueConstraint(fields=["session", "digest"], name="head_pk")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class Record(models.Model):
    """One chat request. `id` grows with arrival; the contract's states are its life."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="records", db_index=False)
    state = models.CharField(max_length=20, choices=RECORD_STATES)
    protocol = models.CharField(max_length=20)
    path = models.TextField()
    stream = models.BooleanField(default=False)
    parent_seq = models.IntegerField(null=True, blank=True, help_text="Attach point chosen in prepare")
    node_seq = models.IntegerField(null=True, blank=True, help_text="Node it became")
    attach_kind = models.CharField(max_length=20, choices=ATTACH_KINDS, null=True, blank=True)
    cause = models.CharField(max_length=40, choices=CAUSES, null=True, blank=True)
    retry_of = models.IntegerField(null=True, blank=True)
    idempotency_key = models.TextField(null=True, blank=True)
    request_hash = models.BinaryField(null=True, help_text="SHA-256 of the body as received")
    head_digest = models.BinaryField(null=True)
    request_params = models.TextField(
        null=True,
        blank=True,
        help_text="Outgoing body as JSON text; messages, tools and input_ids are null in their place",
    )
    client_params = models.TextField(
        null=True,
        blank=True,
        help_text="What the client's body said beside messages and tools, "
        "where the outgoing body cannot say it",
    )
    message_count = models.IntegerField(default=0)
    raw_base = models.IntegerField(
        default=0, help_text="Leading messages spelled as in the attach point's record plus its reply"
    )
    raw_reply = models.TextField(
        null=True, blank=True, help_text="The client's spelling of that reply where it differs"
    )
    raw_leading = models.TextField(
        null=True,
        blank=True,
        help_text="JSON object: matched messages not spelled as stored, by index, where no base holds them",
    )
    raw_tail = models.TextField(
        null=True, blank=True, help_text="JSON list: new messages; null once they are stored with a node"
    )
    raw_path = models.IntegerField(
        null=True,
        blank=True,
        help_text="Of a refused request: node whose path raw_leading and raw_tail are a delta against",
    )
    response = models.TextField(
        null=True, blank=True, help_text="Engine's reply as JSON text without token arrays"
    )
    status_code = models.SmallIntegerField(null=True, blank=True)
    error_code = models.CharField(max_length=40, null=True, blank=True)
    error_text = models.TextField(null=True, blank=True)
    reason = models.CharField(
        max_length=40, null=True, blank=True, help_text="Why a generated reply was not attached"
    )
    weight_version_dispatch = models.TextField(null=True, blank=True)
    weight_version = models.TextField(null=True, blank=True)
    worker = models.TextField(null=True, blank=True)
    prompt_tokens = models.IntegerField(null=True, blank=True)
    reused_tokens = models.IntegerField(null=True, blank=True)
    added_tokens = models.IntegerField(null=True, blank=True)
    generated_tokens = models.IntegerField(null=True, blank=True)
    cached_tokens = models.IntegerField(null=True, blank=True)
    prepare_ms = models.FloatField(null=True, blank=True)
    engine_ms = models.FloatField(null=True, blank=True)
    commit_ms = models.FloatField(null=True, blank=True)
    process = models.CharField(max_length=64, help_text="Instance that took it")
    lease = models.BigIntegerField(
        null=True, blank=True, help_text="Of the process that generates it; null once it is committed"
    )
    arrived_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["session", "id"]
        indexes = [
            models.Index(fields=["id"], name="record_id"),
            models.Index(fields=["session", "node_seq"], name="record_node"),
            models.Index(fields=["session", "request_hash"], name="record_request"),
            models.Index(fields=["arrived_at"], name="record_intents", condition=models.Q(state="intent")),
        ]
        constraints = [
            models.UniqueConstraint(fields=["session", "id"], name="record_pk"),
            known("record_state_known", "state", "record_state"),
            known("record_attach_kind_known", "attach_kind", "attach_kind"),
            known("record_cause_known", "cause", "cause"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id.hex} record {self.pk}"


class UnattachedReply(models.Model):
    """Tokens of a reply that was generated but is in no tree: lost race, deleted session, failed
    validation.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="unattached", db_index=False)
    record_id = models.BigIntegerField()
    prompt = models.BinaryField(help_text="Ids fed beyond the attach point, packed little-endian int32")
    completion = models.BinaryField()
    logprobs = models.BinaryField()
    logprob_width = models.SmallIntegerField()
    logprob_texts = models.TextField(
        null=True, blank=True, help_text="JSON list of the engine's token texts, if it sent any"
    )
    routed_experts = models.BinaryField(null=True, help_text="Packed little-endian int32")
    routed_experts_start = models.IntegerField(
        null=True, blank=True, help_text="First row asked for, additional R3"
    )
    indexer_topk = models.BinaryField(null=True, help_text="Packed little-endian int32")

    class Meta:
        ordering = ["session", "record_id"]
        indexes = [models.Index(fields=["id"], name="unattached_id")]
        constraints = [models.UniqueConstraint(fields=["session", "record_id"], name="unattached_pk")]

    def __str__(self) -> str:
        return f"{self.session_id.hex} record {self.record_id}"


class IdempotencyClaim(models.Model):
    """Who holds an Idempotency-Key: one live record per session and key until it expires."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="claims", db_index=False)
    key = models.TextField()
    request_hash = models.BinaryField()
    record_id = models.BigIntegerField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["session", "key"]
        indexes = [models.Index(fields=["id"], name="claim_id")]
        constraints = [models.UniqueConstraint(fields=["session", "key"], name="claim_pk")]

    def __str__(self) -> str:
        return f"{self.session_id.hex} {self.key}"
