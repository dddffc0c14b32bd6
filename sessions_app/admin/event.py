"""History events and rewards."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.admin.base import SessionRowAdmin, section
from sessions_app.admin.node import cause_shown, session_link
from sessions_app.history.causes import Cause
from sessions_app.models import HistoryEvent, Reward
from sessions_app.presentation.addresses import node_url, record_url, rewards_url
from sessions_app.presentation.markup import explained, json_block, link, prose
from sessions_app.presentation.words import EVENT_KINDS


def event_kind_shown(kind: str) -> SafeString:
    """A kind of event with its meaning."""
    tone, meaning = EVENT_KINDS[kind]
    return explained(kind, meaning, tone)


@admin.register(HistoryEvent)
class HistoryEventAdmin(SessionRowAdmin):
    """One row a decision that was no plain append, newest first."""

    list_display = (
        "name",
        "session_shown",
        "node_shown",
        "kind_shown",
        "why",
        "place",
        "matcher",
        "looser_matcher",
        "at",
    )
    list_filter = ("kind", "cause", "at")
    fieldsets = (
        section(None, "session_shown node_shown record_shown kind_shown why meaning at"),
        section(
            "First difference",
            "compared_shown message_index field stored_shown replayed_shown char_offset token_index",
        ),
        section("Matcher", "matcher looser_matcher detail_shown"),
    )

    @admin.display(description="event")
    def name(self, event: HistoryEvent) -> str:
        """Its number."""
        return f"event {event.pk}"

    @admin.display(description="session")
    def session_shown(self, event: HistoryEvent) -> SafeString:
        """Its session."""
        return session_link(event)

    @admin.display(description="node")
    def node_shown(self, event: HistoryEvent) -> SafeString | str:
        """The node it made."""
        return _node(event, event.node_seq)

    @admin.display(description="compared with the path to")
    def compared_shown(self, event: HistoryEvent) -> SafeString | str:
        """The stored path that the request came closest to."""
        return _node(event, event.compared_seq)

    @admin.display(description="record")
    def record_shown(self, event: HistoryEvent) -> SafeString | str:
        """The request."""
        return (
            "–" if event.record_id is None else link(record_url(event.record_id), f"record {event.record_id}")
        )

    @admin.display(description="kind")
    def kind_shown(self, event: HistoryEvent) -> SafeString:
        """What was decided."""
        return event_kind_shown(event.kind)

    @admin.display(description="cause")
    def why(self, event: HistoryEvent) -> SafeString:
        """Its cause."""
        return cause_shown(event.cause)

    @admin.display(description="which means")
    def meaning(self, event: HistoryEvent) -> str:
        """The cause in words."""
        return Cause(event.cause).meaning

    @admin.display(description="first difference")
    def place(self, event: HistoryEvent) -> SafeString | str:
        """Message and field."""
        if event.message_index is None:
            return event.field or "–"
        return format_html("message {} <code>{}</code>", event.message_index, prose(event.field or ""))

    @admin.display(description="stored value")
    def stored_shown(self, event: HistoryEvent) -> SafeString:
        """JSON text, cut."""
        return json_block(event.stored_value)

    @admin.display(description="replayed value")
    def replayed_shown(self, event: HistoryEvent) -> SafeString:
        """JSON text, cut."""
        return json_block(event.replayed_value)

    @admin.display(description="detail")
    def detail_shown(self, event: HistoryEvent) -> SafeString | str:
        """What else is to be said."""
        return prose(event.detail) if event.detail else "–"


def _node(event: HistoryEvent, seq: int | None) -> SafeString | str:
    return "–" if seq is None else link(node_url(event.session_id, seq), f"node {seq}")


@admin.register(Reward)
class RewardAdmin(SessionRowAdmin):
    """One row a reported value."""

    list_display = (
        "label",
        "session_shown",
        "node_shown",
        "value",
        "weight",
        "source",
        "reach_shown",
        "created_at",
    )
    list_filter = ("created_at",)
    fieldsets = (
        section(None, "session_shown node_shown name value weight source key reach_shown created_at"),
    )

    @admin.display(description="reward")
    def label(self, reward: Reward) -> str:
        """Its name."""
        return reward.name

    @admin.display(description="session")
    def session_shown(self, reward: Reward) -> SafeString:
        """Its session."""
        return session_link(reward)

    @admin.display(description="node")
    def node_shown(self, reward: Reward) -> SafeString | str:
        """The node it is for."""
        if reward.node_seq is None:
            return "whole session"
        return link(node_url(reward.session_id, reward.node_seq), f"node {reward.node_seq}")

    @admin.display(description="what it reached")
    def reach_shown(self, reward: Reward) -> SafeString:
        """Rows and numbers it is part of."""
        return link(f"{rewards_url(reward.session_id)}#r{reward.pk}", "rows", "the rows it reached")
