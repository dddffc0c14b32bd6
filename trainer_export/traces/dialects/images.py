"""Image URLs of recorded messages, whichever dialect wrote them, in order."""

from collections.abc import Iterator
from typing import Any

from trainer_export.traces.dialects.json_text import loaded

_MAX_DEPTH = 12


def image_urls(messages: Any) -> list[str]:
    """OpenAI's `image_url` parts, OpenInference's `image.url`, and media parts of modality `image`."""
    return list(_urls(messages, 0))


def _urls(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        value = loaded(value)
    if isinstance(value, list):
        for item in value:
            yield from _urls(item, depth + 1)
    elif isinstance(value, dict):
        url = _url(value)
        if url is not None:
            yield url
            return
        for key, item in value.items():
            if isinstance(item, dict | list) or key == "content":
                yield from _urls(item, depth + 1)


def _url(part: dict[str, Any]) -> str | None:
    kind = part.get("type")
    if kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
    elif kind == "uri" and part.get("modality") == "image":
        url = part.get("uri")
    elif kind == "image" and isinstance(part.get("image"), dict):
        inner = part["image"].get("image", part["image"])
        url = inner.get("url") if isinstance(inner, dict) else None
    else:
        return None
    return url if isinstance(url, str) else None
