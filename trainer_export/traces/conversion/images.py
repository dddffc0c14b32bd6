"""Image URLs of a prompt, in order; whatever has another shape is passed over."""

import json
from collections.abc import Iterator
from typing import Any


def image_urls(prompt: Any) -> list[Any]:
    """URLs as recorded, whatever their type."""
    return [url for message in _messages(prompt) for url in _urls(message)]


def _messages(prompt: Any) -> list[Any]:
    """The list, or the entries under digit keys in numeric order, or the dict as the only message."""
    if isinstance(prompt, list):
        return prompt
    if not isinstance(prompt, dict):
        return []
    numbered = sorted((key for key in prompt if key.isdigit()), key=int)
    return [prompt[key] for key in numbered] or [prompt]


def _urls(message: Any) -> Iterator[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        content = _parsed(content)
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or part.get("type") != "image_url":
            continue
        image = part.get("image_url")
        if isinstance(image, dict) and "url" in image:
            yield image["url"]


def _parsed(content: str) -> Any:
    """Multimodal content is recorded as JSON text."""
    try:
        return json.loads(content)
    except json.JSONDecodeError:
        return None
