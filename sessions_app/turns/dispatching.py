"""What an engine is asked: the client's request with forced sampling and limits in place."""

from collections.abc import Mapping
from typing import Any

from sessions_app.backends.base import GenerationRequest
from sessions_app.backends.sampling import LIMITS
from sessions_app.turns.prepare import Prepared
from sessions_app.turns.profiles import Profile
from tito_project.configuration import Configuration


def generation_request(
    prepared: Prepared, profile: Profile, configuration: Configuration
) -> GenerationRequest:
    """The request of a prepared turn."""
    request = prepared.request
    body = _forced(request.body, prepared.settings.sampling)
    if prepared.max_new_tokens is not None:
        body |= _bounded(body, prepared.max_new_tokens)
    rows = None
    if configuration.addition_r3 and (configuration.routing_replay or body.get("return_routed_experts")):
        parent = prepared.parent_node
        rows = max(0, parent.total_tokens - 1) if parent else 0
    return GenerationRequest(
        session_id=prepared.settings.id.hex,
        prompt_ids=prepared.prompt.ids,
        body=body,
        template_kwargs=profile.renderer.with_kwargs(request.template_kwargs).template_kwargs,
        tools=request.tools,
        headers=request.arrival.headers,
        query=request.arrival.query,
        odd_numbers=request.odd_numbers,
        patient=not request.arrival.reference,
        worker=prepared.state.worker or "",
        routed_experts_start_len=rows,
    )


def _forced(body: Mapping[str, Any], sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The client's body under forced values; a forced limit replaces the client's, whatever name that has."""
    merged = {**body, **sampling}
    name, limit = _limit(sampling)
    if limit is None:
        return merged
    return {**{key: value for key, value in merged.items() if key not in LIMITS}, name: limit}


def _bounded(body: Mapping[str, Any], most: int) -> dict[str, int]:
    """The client's token limit, lowered to the room that is left."""
    name, asked = _limit(body)
    return {name: min(asked, most) if isinstance(asked, int) and not isinstance(asked, bool) else most}


def _limit(body: Mapping[str, Any]) -> tuple[str, Any]:
    """The token limit of a body, None for none, under a name that chat engines know too."""
    name = next((name for name in LIMITS if body.get(name) is not None), "max_tokens")
    return (name if name == "max_completion_tokens" else "max_tokens"), body.get(name)
