"""Checkpoints and what else holds ids: as cells with text and logprob, in windows."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section
from sessions_app.admin.node import session_link
from sessions_app.admin.pages.serving import number
from sessions_app.admin.pages.token_view import stretch_of
from sessions_app.admin.readers import READERS
from sessions_app.insight.paths import PathTurn, TokenPath, load_path, path_of
from sessions_app.models import (
    ModelProfile,
    Record,
    RequestHead,
    SidePayload,
    TokenCheckpoint,
    UnattachedReply,
)
from sessions_app.packing import unpack_ids, unpack_logprobs
from sessions_app.presentation.addresses import node_url, record_url
from sessions_app.presentation.markup import link

_INT32 = 4
_BEGINNING = 512
"""Numbers of a payload that are shown."""


class TokenRowAdmin(SessionRowAdmin):
    """Rows that hold ids."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The row; it remembers where its view shall begin."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.asked_start = number(request, "at", 0)
        return row

    @admin.display(description="session")
    def session_shown(self, row: Any) -> SafeString:
        """Its session."""
        return session_link(row)


@admin.register(TokenCheckpoint)
class TokenCheckpointAdmin(TokenRowAdmin):
    """The delta of one node."""

    list_display = ("name", "session_shown", "prompt_ids", "completion_ids", "glue_tokens", "boundary_trim")
    list_filter = ("boundary_trim",)
    fieldsets = (section(None, "session_shown node_shown boundary_trim glue_tokens logprob_width tokens"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists show lengths and load no arrays."""
        rows = (
            super()
            .get_queryset(request)
            .annotate(prompt_bytes=Length("prompt_delta"), completion_bytes=Length("completion"))
        )
        return rows.defer("prompt_delta", "completion", "logprobs", "logprob_texts")

    @admin.display(description="checkpoint")
    def name(self, checkpoint: TokenCheckpoint) -> str:
        """Of which node."""
        return f"node {checkpoint.node_seq}"

    @admin.display(description="node")
    def node_shown(self, checkpoint: TokenCheckpoint) -> SafeString:
        """The node it belongs to."""
        return link(node_url(checkpoint.session_id, checkpoint.node_seq), f"node {checkpoint.node_seq}")

    @admin.display(description="prompt ids")
    def prompt_ids(self, checkpoint: Any) -> int:
        """Ids that the turn added to its parent's."""
        return checkpoint.prompt_bytes // _INT32

    @admin.display(description="sampled ids")
    def completion_ids(self, checkpoint: Any) -> int:
        """Ids that the engine sampled."""
        return checkpoint.completion_bytes // _INT32

    @admin.display(description="ids of this node")
    def tokens(self, checkpoint: Any) -> SafeString:
        """The delta as cells, at its place in the path."""
        path = load_path(checkpoint.session_id, checkpoint.node_seq)
        span = path.spans[-1]
        return _stretch(checkpoint, path, span.start, span.end)


@admin.register(UnattachedReply)
class UnattachedReplyAdmin(TokenRowAdmin):
    """Replies that were generated and stand in no tree."""

    list_display = ("name", "session_shown")
    fieldsets = (section(None, "session_shown record_shown tokens"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no arrays."""
        return super().get_queryset(request).defer("prompt", "completion", "logprobs")

    @admin.display(description="reply")
    def name(self, reply: UnattachedReply) -> str:
        """Of which record."""
        return f"record {reply.record_id}"

    @admin.display(description="record")
    def record_shown(self, reply: UnattachedReply) -> SafeString:
        """The request that it answered."""
        return link(record_url(reply.record_id), f"record {reply.record_id}")

    @admin.display(description="ids beyond the attach point")
    def tokens(self, reply: Any) -> SafeString:
        """What was fed beyond the attach point, and what was sampled."""
        path = path_of([_unattached_turn(reply, _tokenizer_of(reply))])
        return _stretch(reply, path, 0, len(path.ids))


def _stretch(row: Any, path: TokenPath, first: int, last: int) -> SafeString:
    """Ids of a row as cells; `?at=` says where to begin."""
    profile = ModelProfile.objects.get(sessions=row.session_id)
    reading = READERS.reading(profile, path.tokenizers)
    stretch = stretch_of(path, first, last, row.asked_start, reading, "logprob")
    context = {"page": stretch, "session_id": row.session_id.hex, "paged": True}
    return render_to_string("admin/tito/stretch.html", context)


def _tokenizer_of(reply: UnattachedReply) -> str:
    """Fingerprint of the tokenizer that its request was rendered with."""
    digest = Record.objects.filter(session=reply.session_id, id=reply.record_id).values("head_digest")
    heads = RequestHead.objects.filter(session=reply.session_id, digest__in=digest)
    return heads.values_list("tokenizer_fingerprint", flat=True).first() or "unknown"


def _unattached_turn(reply: UnattachedReply, tokenizer: str) -> PathTurn:
    return PathTurn(
        seq=-1,
        finish_reason="",
        version_dispatch=None,
        version=None,
        tokenizer_fingerprint=tokenizer,
        trim=0,
        glue=0,
        prompt=unpack_ids(bytes(reply.prompt)),
        completion=unpack_ids(bytes(reply.completion)),
        logprobs=unpack_logprobs(bytes(reply.logprobs), reply.logprob_width),
    )


@admin.register(SidePayload)
class SidePayloadAdmin(SessionRowAdmin):
    """Riders of a generation: routed experts, indexer rows."""

    list_display = ("name", "session_shown", "node_shown", "values", "start_row", "layers")
    list_filter = ("kind",)
    fieldsets = (
        section(None, "session_shown node_shown kind start_row layers prefix_bytes values beginning"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Lists load no payloads."""
        return super().get_queryset(request).annotate(payload_bytes=Length("payload")).defer("payload")

    @admin.display(description="payload")
    def name(self, side: SidePayload) -> str:
        """What it is."""
        return f"{side.kind} of node {side.node_seq}"

    @admin.display(description="session")
    def session_shown(self, side: SidePayload) -> SafeString:
        """Its session."""
        return session_link(side)

    @admin.display(description="node")
    def node_shown(self, side: SidePayload) -> SafeString:
        """The node it belongs to."""
        return link(node_url(side.session_id, side.node_seq), f"node {side.node_seq}")

    @admin.display(description="values")
    def values(self, side: Any) -> int:
        """Numbers it holds."""
        return side.payload_bytes // _INT32

    @admin.display(description="first values")
    def beginning(self, side: SidePayload) -> str:
        """The first numbers of the payload."""
        return " ".join(str(value) for value in unpack_ids(bytes(side.payload)[: _BEGINNING * _INT32]))
