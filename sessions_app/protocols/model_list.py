"""The list of models, in OpenAI's shape and in Anthropic's: each profile by its own name and its model's."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from sessions_app.store.profiles import ListedModel


def openai_list(profiles: Iterable[ListedModel]) -> dict[str, Any]:
    """GET /v1/models for OpenAI's clients."""
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": int(profile.created_at.timestamp()),
                "owned_by": "tito",
            }
            for name, profile in _named(profiles)
        ],
    }


def anthropic_list(profiles: Iterable[ListedModel]) -> dict[str, Any]:
    """GET /v1/models for Anthropic's clients."""
    models = [
        {"type": "model", "id": name, "display_name": name, "created_at": profile.created_at.isoformat()}
        for name, profile in _named(profiles)
    ]
    ids = [model["id"] for model in models]
    return {
        "data": models,
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


def one_of_list(listed: dict[str, Any], name: str) -> dict[str, Any] | None:
    """One model of a list, in the list's shape; None where it has none of that name."""
    return next((model for model in listed["data"] if model["id"] == name), None)


def _named(profiles: Iterable[ListedModel]) -> Iterator[tuple[str, ListedModel]]:
    seen = set()
    for profile in profiles:
        for name in (profile.name, _public_name(profile.model)):
            if name and name not in seen:
                seen.add(name)
                yield name, profile


def _public_name(model: str) -> str:
    """A hub name as it is; of a folder only the last part."""
    path = PurePath(model)
    return path.name if path.is_absolute() or model.startswith(".") else model
