"""OpenAI Responses, by session, by key and by attempt."""

from dataclasses import replace
from typing import Any

from sessions_app import errors
from sessions_app.api.addressing import BY_ATTEMPT, BY_KEY, BY_URL
from sessions_app.api.proxy import ProxyView
from sessions_app.api.runtime import Runtime
from sessions_app.api.turn import TurnView
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.responses import RESPONSES
from sessions_app.protocols.responses.identity import node_of
from sessions_app.store import attach
from sessions_app.store.values import SessionSettings
from sessions_app.turns.values import Arrival


class _ResponsesTurn(TurnView):
    """A turn that may name the response it continues."""

    protocol = RESPONSES

    async def incoming(self, state: Runtime, settings: SessionSettings, arrival: Arrival) -> Incoming:
        """The body, with the stored messages of the response it continues."""
        incoming = await super().incoming(state, settings, arrival)
        named = incoming.value.get("previous_response_id") if isinstance(incoming.value, dict) else None
        if named is None:
            return incoming
        return replace(incoming, previous=await self._stored(state, settings, named))

    @staticmethod
    async def _stored(state: Runtime, settings: SessionSettings, named: Any) -> list[str]:
        """JSON texts of the named response's whole path. Another session's response does not exist."""
        found = node_of(named)
        stored = []
        if found is not None and found[0] == settings.id and found[1] < 2**31:
            stored = await attach.load_path_messages(state.db, settings.id, found[1])
        if not stored:
            raise errors.InvalidArgument(f"Previous response with id {str(named)[:80]!r} not found.")
        return [message.body for message in stored]


class ResponsesView(_ResponsesTurn, ProxyView):
    """POST /sessions/{id}/v1/responses."""

    addressing = BY_URL
    path = RESPONSES.path.lstrip("/")


class KeyResponsesView(_ResponsesTurn):
    """POST /v1/responses."""

    addressing = BY_KEY


class AttemptResponsesView(_ResponsesTurn):
    """POST /rollout/{rollout_id}/attempt/{attempt_id}/v1/responses."""

    addressing = BY_ATTEMPT
