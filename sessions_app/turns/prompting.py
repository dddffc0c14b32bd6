"""The ids to feed: stored ids of the matched path plus only what is new, or a full render where there is
no path.

Invariant: every id is either a stored id of the attach point's path or tokenised in this turn. Long work
runs in a thread whose tokenizer call releases the interpreter lock, so that other turns go on.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sessions_app.history.causes import Cause
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Extension, Message, Renderer
from sessions_app.store.values import NewEvent

_INLINE_BYTES = 6_000
"""Text below this is rendered and tokenised on the loop: about a millisecond."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the engine is fed, and how it came about."""

    ids: Ids
    delta: Ids
    """The ids that this turn adds to the attach point's tokens."""
    trim: int
    """Ids of the attach point dropped at the boundary."""
    glue: int
    """Leading ids of `delta` that close the attach point's turn."""
    reused: int
    """Stored ids that are fed again."""


async def render(
    renderer: Renderer, messages: Sequence[Message], tools: list[Any] | None, size: int
) -> Prompt:
    """A full render. `size`: bytes of the request."""
    ids = await _run(size, lambda: renderer.render(messages, tools))
    return Prompt(ids, ids, 0, 0, 0)


async def extend(
    renderer: Renderer,
    served: Ids,
    last_message: Message,
    new_messages: Sequence[Message],
    tools: list[Any] | None,
    *,
    cut: bool,
    size: int,
) -> Prompt:
    """Stored ids, glue, new messages. `size`: bytes of the new messages. Raises RendererRefused."""

    def work() -> Extension:
        return renderer.extend(served, last_message, new_messages, tools, cut=cut)

    extension = await _run(size, work)
    kept = served[: len(served) - extension.trim] if extension.trim else served
    delta = extension.ids
    return Prompt(np.concatenate([kept, delta]), delta, extension.trim, len(extension.glue), len(kept))


def trim_event(prompt: Prompt) -> NewEvent:
    """The event of boundary ids that were dropped."""
    return NewEvent("trim", Cause.BOUNDARY_TRIM, detail=f"{prompt.trim} boundary id(s) dropped")


def continues(served: Ids, rendered: Ids) -> bool:
    """Whether a fresh render happens to go on from the served ids."""
    return len(rendered) > len(served) and bool(np.array_equal(rendered[: len(served)], served))


def common_prefix(served: Ids, fed: Ids) -> int:
    """Leading ids that two arrays share."""
    shared = min(len(served), len(fed))
    different = np.flatnonzero(served[:shared] != fed[:shared])
    return int(different[0]) if different.size else shared


async def _run(size: int, work: Callable[[], T]) -> T:
    return work() if size < _INLINE_BYTES else await asyncio.to_thread(work)
