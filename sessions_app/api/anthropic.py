"""Anthropic Messages and its token count, by session, by key and by attempt."""

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.addressing import BY_ATTEMPT, BY_KEY, BY_URL, Addressing
from sessions_app.api.direct import DirectView, json_response
from sessions_app.api.proxy import ProxyView
from sessions_app.api.turn import TurnView, arrival_of
from sessions_app.json_text import loads
from sessions_app.protocols.anthropic import ANTHROPIC
from sessions_app.protocols.base import Incoming
from sessions_app.store import sessions
from sessions_app.turns import prompting


class MessagesView(TurnView, ProxyView):
    """POST /sessions/{id}/v1/messages."""

    protocol = ANTHROPIC
    addressing = BY_URL
    path = ANTHROPIC.path.lstrip("/")


class KeyMessagesView(TurnView):
    """POST /v1/messages."""

    protocol = ANTHROPIC
    addressing = BY_KEY


class AttemptMessagesView(TurnView):
    """POST /rollout/{rollout_id}/attempt/{attempt_id}/v1/messages."""

    protocol = ANTHROPIC
    addressing = BY_ATTEMPT


class CountTokensView(DirectView):
    """POST /sessions/{id}/v1/messages/count_tokens: how long a request renders. Nothing is recorded."""

    http_method_names = ["post"]
    addressing: ClassVar[Addressing] = BY_URL

    async def post(self, request: Request, **named: str) -> HttpResponseBase:
        """The length of a fresh render, generation prompt included."""
        state = runtime.current()
        await access.count_request(state, request, named)
        settings = await self.addressing.session_of(state, request, ANTHROPIC, **named)
        if not await sessions.exists(state.db, settings.id):
            raise errors.SessionNotFound(settings.id.hex)
        arrival = arrival_of(state, request, ANTHROPIC, reference=False)
        chat = ANTHROPIC.read(Incoming(arrival, loads(arrival.body) if arrival.body else {}, settings))
        if not chat.messages:
            raise errors.InvalidMessages("messages must not be empty")
        profile = await state.profiles.get(settings.profile)
        renderer = profile.renderer.with_kwargs(chat.template_kwargs)
        prompt = await prompting.render(renderer, chat.messages, chat.tools, len(arrival.body))
        return json_response({"input_tokens": len(prompt.ids)})

    def error_body(self, error: errors.TitoError) -> Any:
        """Anthropic's shape."""
        return ANTHROPIC.error_body(error)


class KeyCountTokensView(CountTokensView):
    """POST /v1/messages/count_tokens."""

    addressing = BY_KEY


class AttemptCountTokensView(CountTokensView):
    """POST /rollout/{rollout_id}/attempt/{attempt_id}/v1/messages/count_tokens."""

    addressing = BY_ATTEMPT
