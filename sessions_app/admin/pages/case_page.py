"""A turn as a test case: messages, head, the ids that were fed and sampled, and what a fresh render makes
of it."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import Missing, node_seq, page, read_session
from sessions_app.admin.readers import READERS
from sessions_app.admin.twin import json_reply
from sessions_app.insight.drift import Conversation, compare_lanes, load_conversation
from sessions_app.insight.paths import load_path
from sessions_app.models import Session


@dataclass(frozen=True, slots=True)
class Expectation:
    """What holds for this turn."""

    fed_ids: list[int]
    sampled_ids: list[int]
    logprobs: list[float]
    fresh_render: str
    """`equal`, `differs`, or why it is not known."""
    first_difference: int | None
    """Index of the first served id that a fresh render of the stored messages has otherwise."""


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that reproduces a turn without a server."""

    session_id: str
    node: int
    profile: dict[str, str]
    """What names the renderer."""
    tokenizer_fingerprint: str
    template_fingerprint: str
    template_kwargs: dict[str, Any]
    tools: list[Any] | None
    messages: list[Any]
    """As stored, without the reply."""
    client_messages: list[Any] | None
    """As the client spelled them, where that differs."""
    reply: Any
    expectation: Expectation


_NAMES_RENDERER = ("model", "chat_template", "renderer", "tool_parser", "reasoning_parser")


@page
def case_page(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """Always JSON: it is made to be copied."""
    session = read_session(request, session_id, "case")
    conversation = load_conversation(session.id, node_seq(session, seq))
    if conversation is None:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    return json_reply(build(session, seq, conversation))


def build(session: Session, seq: int, conversation: Conversation) -> Case:
    """The case of a node."""
    client = conversation.client[:-1]
    return Case(
        session_id=session.id.hex,
        node=seq,
        profile={name: getattr(session.profile, name) for name in _NAMES_RENDERER},
        tokenizer_fingerprint=conversation.tokenizer_fingerprint,
        template_fingerprint=conversation.template_fingerprint,
        template_kwargs=conversation.template_kwargs,
        tools=conversation.tools,
        messages=conversation.stored[:-1],
        client_messages=client if client != conversation.stored[:-1] else None,
        reply=conversation.stored[-1],
        expectation=_expectation(session, seq, conversation),
    )


def _expectation(session: Session, seq: int, conversation: Conversation) -> Expectation:
    span = load_path(session.id, seq).spans[-1]
    told, first = _fresh(session, conversation)
    return Expectation(
        fed_ids=conversation.served[: span.spoken].tolist(),
        sampled_ids=span.turn.completion.tolist(),
        logprobs=span.turn.logprobs.tolist(),
        fresh_render=told,
        first_difference=first,
    )


def _fresh(session: Session, conversation: Conversation) -> tuple[str, int | None]:
    reading = READERS.reading(session.profile, [conversation.tokenizer_fingerprint])
    if reading.renderer is None:
        return f"unknown because {reading.unavailable}", None
    view = compare_lanes(conversation, reading.renderer)
    stored = view.lanes[1]
    if stored.unavailable is not None:
        return f"unknown because {stored.unavailable}", None
    differing = [one.block.bounds[0][0] for one in view.differences if one.kinds[1] is not None]
    return ("differs", differing[0]) if differing else ("equal", None)
