"""Drift: where the ids that were served part from a fresh render of the same messages, and why.

Pure. Two views of one difference. The comparator's tells texts and special tokens segment by segment, ids
that spell the same text being equal to it; the break's tells the first id and its class. Invariant: what a
template prints behind the last id that was served is no drift.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from sessions_app.rendering.comparator import Mismatch
from sessions_app.rendering.protocol import Ids, Message, Renderer


class TokenText(Protocol):
    """What has to be known of a tokenizer."""

    @property
    def special_ids(self) -> Collection[int]:
        """Ids of special tokens."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """Decoded, special tokens left out."""
        ...


@dataclass(frozen=True, slots=True)
class Break:
    """Why one row of ids does not go on from another: three classes, of which several can hold at once.

    The last two exclude each other; none holds when only the number of special tokens differs.
    """

    template_mismatch: bool
    """The special tokens differ."""
    retoken_mismatch: bool
    """The text continues, its tokens differ."""
    others_mismatch: bool
    """The text differs."""
    position: int
    """Index of the first id that differs."""


def classify(ids: Sequence[int], context: Sequence[int], tokens: TokenText) -> Break | None:
    """None when `ids` starts with `context`."""
    position = _leaves(ids, context)
    if position is None:
        return None
    special = frozenset(tokens.special_ids)
    pairs = zip(_kept(ids, special), _kept(context, special), strict=False)
    rest, rest_before = _left_out(ids, special), _left_out(context, special)
    same_tokens = rest[: len(rest_before)] == rest_before
    same_text = tokens.text(ids).startswith(tokens.text(context))
    return Break(
        template_mismatch=any(ours != theirs for ours, theirs in pairs),
        retoken_mismatch=not same_tokens and same_text,
        others_mismatch=not same_tokens and not same_text,
        position=position,
    )


def _leaves(ids: Sequence[int], prefix: Sequence[int]) -> int | None:
    """The first position where `ids` leaves `prefix`; None when it does not."""
    for position, (ours, theirs) in enumerate(zip(ids, prefix, strict=False)):
        if ours != theirs:
            return position
    return None if len(ids) >= len(prefix) else len(ids)


def _kept(ids: Sequence[int], special: frozenset[int]) -> list[int]:
    return [token for token in ids if token in special]


def _left_out(ids: Sequence[int], special: frozenset[int]) -> list[int]:
    return [token for token in ids if token not in special]


@dataclass(frozen=True, slots=True)
class Drift:
    """What became of one path between serving and a fresh render."""

    served_tokens: int
    fresh_tokens: int
    """Of the render without a generation prompt."""
    mismatches: tuple[Mismatch, ...]
    """The comparator's, in order."""
    broken: Break | None
    """Where and why the fresh ids leave the served ones; None when they spell the path in the same ids."""


def drift(
    renderer: Renderer,
    messages: Sequence[Message],
    tools: Sequence[Any] | None,
    served: Ids,
    began: datetime | None = None,
) -> Drift:
    """The drift of a path that ends with a generated turn. Slow: renders the whole path, as of the time at
    which its first request came.

    Raises what a render raises.
    """
    fresh = renderer.render(messages, tools or None, add_generation_prompt=False, when=began)
    ours, theirs = comparable(renderer, served, fresh)
    return Drift(
        served_tokens=served.size,
        fresh_tokens=fresh.size,
        mismatches=tuple(renderer.compare(theirs, ours)),
        broken=classify(theirs.tolist(), ours.tolist(), RendererText(renderer)),
    )


def comparable(renderer: Renderer, served: Ids, fresh: Ids) -> tuple[Ids, Ids]:
    """Served and fresh ids without what a template prints behind the last id that was served."""
    trailing = renderer.comparison.trailing_ids
    ours, theirs = _without_tail(served, trailing), _without_tail(fresh, trailing)
    return ours, _as_far_as(ours, theirs, renderer)


def _without_tail(ids: Ids, trailing: Collection[int]) -> Ids:
    end = ids.size
    while end and int(ids[end - 1]) in trailing:
        end -= 1
    return ids[:end]


def _as_far_as(served: Ids, fresh: Ids, renderer: Renderer) -> Ids:
    """The fresh render without the close of a last turn that was cut or whose stop token was left out."""
    stops = renderer.stop_token_ids
    if not (served.size and fresh.size) or int(served[-1]) in stops or int(fresh[-1]) not in stops:
        return fresh
    return _without_tail(fresh[:-1], renderer.comparison.trailing_ids)


class RendererText:
    """A renderer's tokenizer, as `classify` asks for it."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self.special_ids = renderer.comparison.special_ids

    def text(self, ids: Sequence[int]) -> str:
        """See TokenText."""
        kept = _left_out(ids, self.special_ids)
        return self._renderer.decode(np.asarray(kept, dtype=np.int32))
