"""Records, request heads, idempotency claims: what was asked and what became of it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section
from sessions_app.admin.node import cause_shown, kind_shown, session_link
from sessions_app.models import IdempotencyClaim, Record, RequestHead
from sessions_app.presentation.addresses import node_url, record_url
from sessions_app.presentation.markup import explained, hex_digest, json_block, link, text_block
from sessions_app.presentation.words import STATES

_LONG_TEXTS = ("request_params", "client_params", "raw_reply", "raw_leading", "raw_tail", "response")


def state_shown(state: str) -> SafeString:
    """A record state with its meaning."""
    tone, meaning = STATES[state]
    return explained(state, meaning, tone)


@admin.register(Record)
class RecordAdmin(SessionRowAdmin):
    """One row a request, newest first."""

    list_display = (
        "name",
        "session_shown",
        "state_shown",
        "node_shown",
        "kind",
        "why",
        "reused_tokens",
        "added_tokens",
        "generated_tokens",
        "engine_ms_shown",
        "error_shown",
        "arrived_at",
    )
    list_filter = ("state", "protocol", "attach_kind", "cause", "arrived_at")
    fieldsets = (
        section(None, "session_shown state_shown node_shown parent_shown kind why retry_of"),
        section(
            "Request",
            "protocol path stream message_count idempotency_key hash_shown params_shown client_params_shown",
        ),
        section(
            "Spelling of the replayed history",
            "raw_base raw_path raw_reply_shown raw_leading_shown raw_tail_shown",
        ),
        section("Answer", "status_code error_code error_text_shown reason response_shown"),
        section(
            "Tokens",
            "prompt_tokens reused_tokens added_tokens generated_tokens cached_tokens "
            "weight_version_dispatch weight_version worker",
        ),
        section("Times", "arrived_at prepare_ms engine_ms commit_ms finished_at confirmed_at process"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no bodies."""
        return super().get_queryset(request).defer(*_LONG_TEXTS)

    @admin.display(description="record")
    def name(self, record: Record) -> str:
        """Its number."""
        return f"record {record.pk}"

    @admin.display(description="session")
    def session_shown(self, record: Record) -> SafeString:
        """Its session."""
        return session_link(record)

    @admin.display(description="state")
    def state_shown(self, record: Record) -> SafeString:
        """How far it came."""
        return state_shown(record.state)

    @admin.display(description="node")
    def node_shown(self, record: Record) -> SafeString | str:
        """The node it became."""
        return _node(record, record.node_seq, "none")

    @admin.display(description="attach point")
    def parent_shown(self, record: Record) -> SafeString | str:
        """The node it continued."""
        return _node(record, record.parent_seq, "root")

    @admin.display(description="attached as")
    def kind(self, record: Record) -> SafeString:
        """Attach kind."""
        return kind_shown(record.attach_kind)

    @admin.display(description="cause")
    def why(self, record: Record) -> SafeString:
        """Cause."""
        return cause_shown(record.cause)

    @admin.display(description="engine ms")
    def engine_ms_shown(self, record: Record) -> str:
        """Time in the engine."""
        return "–" if record.engine_ms is None else f"{record.engine_ms:,.0f}"

    @admin.display(description="error")
    def error_shown(self, record: Record) -> SafeString:
        """Code of its error."""
        return explained(record.error_code, record.error_text or "", "bad")

    @admin.display(description="SHA-256 of the body")
    def hash_shown(self, record: Record) -> SafeString:
        """Of the body as received."""
        return hex_digest(record.request_hash)

    @admin.display(description="outgoing body")
    def params_shown(self, record: Record) -> SafeString:
        """What was sent to the engine; what is stored elsewhere is marked."""
        return json_block(record.request_params)

    @admin.display(description="asked by the client")
    def client_params_shown(self, record: Record) -> SafeString:
        """Where the outgoing body says otherwise: sampling that is forced, limits, fields an engine lacks."""
        return json_block(record.client_params)

    @admin.display(description="attach point's reply, as replayed")
    def raw_reply_shown(self, record: Record) -> SafeString:
        """Only where it differs from the stored one."""
        return json_block(record.raw_reply)

    @admin.display(description="matched messages, as replayed")
    def raw_leading_shown(self, record: Record) -> SafeString:
        """Only where no earlier record spells them alike."""
        return json_block(record.raw_leading)

    @admin.display(description="new messages")
    def raw_tail_shown(self, record: Record) -> SafeString:
        """Only of requests that became no node."""
        return json_block(record.raw_tail)

    @admin.display(description="engine's reply")
    def response_shown(self, record: Record) -> SafeString:
        """Without token arrays."""
        return json_block(record.response)

    @admin.display(description="error text")
    def error_text_shown(self, record: Record) -> SafeString | str:
        """What the client was told."""
        return text_block(record.error_text) if record.error_text else "–"


def _node(record: Record, seq: int | None, absent: str) -> SafeString | str:
    return absent if seq is None else link(node_url(record.session_id, seq), f"node {seq}")


@admin.register(RequestHead)
class RequestHeadAdmin(SessionRowAdmin):
    """Tools and template kwargs as requests spelled them."""

    list_display = (
        "name",
        "session_shown",
        "identity_shown",
        "template_fingerprint",
        "tokenizer_fingerprint",
    )
    fieldsets = (
        section(
            None,
            "session_shown digest_shown identity_shown template_fingerprint tokenizer_fingerprint "
            "kwargs_shown tools_shown",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no tools."""
        return super().get_queryset(request).defer("tools")

    @admin.display(description="head")
    def name(self, head: RequestHead) -> str:
        """The beginning of its digest."""
        return bytes(head.digest).hex()[:12]

    @admin.display(description="session")
    def session_shown(self, head: RequestHead) -> SafeString:
        """Its session."""
        return session_link(head)

    @admin.display(description="digest")
    def digest_shown(self, head: RequestHead) -> SafeString:
        """Of its spelling."""
        return hex_digest(head.digest)

    @admin.display(description="identity")
    def identity_shown(self, head: RequestHead) -> SafeString:
        """Of what the engine sees; equal identities may share a path."""
        return hex_digest(head.identity)

    @admin.display(description="template kwargs")
    def kwargs_shown(self, head: RequestHead) -> SafeString:
        """JSON object."""
        return json_block(head.template_kwargs)

    @admin.display(description="tools")
    def tools_shown(self, head: RequestHead) -> SafeString:
        """As sent."""
        return json_block(head.tools)


@admin.register(IdempotencyClaim)
class IdempotencyClaimAdmin(SessionRowAdmin):
    """Who holds an Idempotency-Key."""

    list_display = ("name", "session_shown", "record_shown", "expires_at")
    fieldsets = (section(None, "session_shown key hash_shown record_shown expires_at"),)

    @admin.display(description="key")
    def name(self, claim: IdempotencyClaim) -> str:
        """The key."""
        return claim.key

    @admin.display(description="session")
    def session_shown(self, claim: IdempotencyClaim) -> SafeString:
        """Its session."""
        return session_link(claim)

    @admin.display(description="record")
    def record_shown(self, claim: Any) -> SafeString | str:
        """The request that holds it."""
        return (
            "–" if claim.record_id is None else link(record_url(claim.record_id), f"record {claim.record_id}")
        )

    @admin.display(description="SHA-256 of the body")
    def hash_shown(self, claim: IdempotencyClaim) -> SafeString:
        """A key used with another body is a conflict."""
        return hex_digest(claim.request_hash)
