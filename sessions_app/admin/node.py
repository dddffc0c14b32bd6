"""Nodes and their messages."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section, short
from sessions_app.admin.twin import wants_json
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.models import Message, Node
from sessions_app.presentation.addresses import node_url, session_url
from sessions_app.presentation.markup import explained, json_block, link, prose
from sessions_app.presentation.words import KIND_TONES


def kind_shown(kind: str | None) -> SafeString:
    """An attach kind with its meaning."""
    return explained(
        kind, AttachKind(kind).meaning if kind else "", KIND_TONES[AttachKind(kind)] if kind else ""
    )


def cause_shown(cause: str | None) -> SafeString:
    """A cause with its meaning."""
    return explained(cause, Cause(cause).meaning if cause else "")


def session_link(row: Any) -> SafeString:
    """The session of a row."""
    return link(session_url(row.session_id), short(row.session_id), row.session_id.hex)


@admin.register(Node)
class NodeAdmin(SessionRowAdmin):
    """One row a node, newest first."""

    list_display = (
        "name",
        "session_shown",
        "parent_shown",
        "kind",
        "why",
        "finish_shown",
        "prompt_tokens",
        "generated",
        "weight_version",
        "committed_at",
    )
    list_filter = ("attach_kind", "cause", "finish_reason", "ill_formed", "committed_at")

    @admin.display(description="node")
    def name(self, node: Node) -> str:
        """Commit order within the session."""
        return f"node {node.seq}"

    @admin.display(description="session")
    def session_shown(self, node: Node) -> SafeString:
        """Its session."""
        return session_link(node)

    @admin.display(description="parent")
    def parent_shown(self, node: Node) -> SafeString | str:
        """The node it continues."""
        if node.parent_seq is None:
            return "root"
        return link(node_url(node.session_id, node.parent_seq), f"node {node.parent_seq}")

    @admin.display(description="attached as")
    def kind(self, node: Node) -> SafeString:
        """Attach kind."""
        return kind_shown(node.attach_kind)

    @admin.display(description="cause")
    def why(self, node: Node) -> SafeString:
        """Cause."""
        return cause_shown(node.cause)

    @admin.display(description="finish")
    def finish_shown(self, node: Node) -> SafeString:
        """Finish reason; an ill-formed reply says so."""
        tone = {"length": "bad", "abort": "bad", "error": "bad"}.get(node.finish_reason, "")
        told = explained(node.finish_reason, "finish reason", tone)
        return (
            format_html("{} {}", told, explained("ill-formed", "Kept as plain text.", "bad"))
            if node.ill_formed
            else told
        )

    @admin.display(description="generated")
    def generated(self, node: Node) -> int:
        """Sampled ids."""
        return node.total_tokens - node.prompt_tokens

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """A node's page has a name that outlives row numbers."""
        node = None if wants_json(request) else self.get_object(request, object_id)
        if isinstance(node, Node) and self.has_view_permission(request, node):
            return HttpResponseRedirect(node_url(node.session_id, node.seq))
        return super().change_view(request, object_id, form_url, extra_context)


@admin.register(Message)
class MessageAdmin(SessionRowAdmin):
    """One row a stored message."""

    list_display = ("place", "session_shown", "node_shown", "role", "generated", "beginning")
    list_filter = ("generated",)
    fieldsets = (section(None, "session_shown node_shown position role generated body_shown sidecar_shown"),)

    @admin.display(description="message")
    def place(self, message: Message) -> str:
        """Position in its path."""
        return f"message {message.position}"

    @admin.display(description="session")
    def session_shown(self, message: Message) -> SafeString:
        """Its session."""
        return session_link(message)

    @admin.display(description="node")
    def node_shown(self, message: Message) -> SafeString:
        """The node that added it."""
        return link(node_url(message.session_id, message.node_seq), f"node {message.node_seq}")

    @admin.display(description="text")
    def beginning(self, message: Message) -> SafeString:
        """The first characters of its JSON text."""
        return format_html("<code>{}</code>", prose(message.body[:120]))

    @admin.display(description="body")
    def body_shown(self, message: Message) -> SafeString:
        """Its JSON text."""
        return json_block(message.body)

    @admin.display(description="sidecar")
    def sidecar_shown(self, message: Message) -> SafeString:
        """What its protocol said beyond the canonical form."""
        return json_block(message.sidecar)
