"""Checkpoint identity: what the engine would see at the head of a conversation, as a digest.

Tools (order counts, key order in a schema does not), template, tokenizer, and those template kwargs that
change the rendered head. Kwargs that only change the suffix are no part of it.
"""

import json
from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import orjson

from sessions_app.errors import TemplateError
from sessions_app.json_text import exact, text_of
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.values import Head

_KEPT = 1024


class HeadIndex:
    """Heads by spelling, so that a head is rendered once per process."""

    def __init__(self) -> None:
        self._heads: OrderedDict[bytes, Head] = OrderedDict()

    def head_of(self, renderer: Renderer, tools: list[Any] | None) -> Head:
        """The head of a request. Raises InvalidTools on tools that are no definitions."""
        tools_text = exact(tools) if tools else b""
        kwargs_text = text_of(dict(renderer.template_kwargs))
        digest = _digest(renderer.fingerprint.encode(), tools_text, kwargs_text.encode())
        head = self._heads.get(digest)
        if head is None:
            head = _read(renderer, tools, digest, tools_text, kwargs_text)
            self._heads[digest] = head
            if len(self._heads) > _KEPT:
                self._heads.popitem(last=False)
        else:
            self._heads.move_to_end(digest)
        return head


def _read(
    renderer: Renderer, tools: list[Any] | None, digest: bytes, tools_text: bytes, kwargs_text: str
) -> Head:
    try:
        head_text = renderer.head_text(tools)
    except TemplateError:
        head_text = ""  # the real conversation may still render; then tools and template are the identity
    identity = _digest(
        renderer.template_fingerprint.encode(),
        renderer.tokenizer_fingerprint.encode(),
        _canonical(tools) if tools else b"",
        head_text.encode("utf-8", "surrogatepass"),
    )
    return Head(
        digest=digest,
        identity=identity,
        tools=tools_text.decode() if tools else None,
        template_kwargs=kwargs_text,
        template_fingerprint=renderer.template_fingerprint,
        tokenizer_fingerprint=renderer.tokenizer_fingerprint,
    )


def _canonical(tools: list[Any]) -> bytes:
    try:
        return orjson.dumps(tools, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(tools, sort_keys=True).encode()


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
