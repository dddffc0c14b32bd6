"""The three lanes of a path: what was served, and two fresh renders of what its messages say today. Reads
only.

*stored*: of the history as it is stored. *client*: of the history as the last request spelled it. A lane
that cannot be rendered says why. Invariant: every difference has a class, and only `assistant_text` and
`respelled` are expected.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from sessions_app.insight.alignment import Block, align
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.packing import EMPTY_IDS, Ids
from sessions_app.rendering.comparator import Mismatch
from sessions_app.rendering.drift import comparable
from sessions_app.rendering.protocol import Renderer
from sessions_app.store import attach, read
from sessions_app.turns import reading

CLASSES = {
    "respelled": "The same text in other ids: what the model sampled is kept as it was sampled.",
    "assistant_text": "Text of an assistant turn differs: expected after healing.",
    "special_token_count": "One side has special tokens that the other has not: the structure differs.",
    "special_token_type": "Other special tokens stand in these places.",
    "non_assistant_text": "Text that no model sampled differs: a defect of rendering.",
}
"""What each class of a difference means."""
EXPECTED = frozenset({"respelled", "assistant_text"})
_OPENING_IDS = 20
"""Ids behind a special token that are read to tell whether an assistant speaks."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A path's messages, as stored and as the client last spelled them, and its ids."""

    served: Ids
    stored: list[Any]
    client: list[Any]
    tools: list[Any] | None
    template_kwargs: dict[str, Any]
    tokenizer_fingerprint: str
    template_fingerprint: str
    began: datetime
    """When its first request came: what a template that prints the time was told."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the comparison."""

    name: str
    ids: Ids
    unavailable: str | None
    """Why it could not be rendered."""
    ignored: int
    """Ids at its end that the family ignores when it compares."""
    mismatches: tuple[Mismatch, ...]
    """Against the served ids, by the family's rules."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A block in which the lanes are not all equal."""

    block: Block
    kinds: tuple[str | None, ...]
    """Class of each lane against the served one; None where it agrees, and for the served one."""


@dataclass(frozen=True, slots=True)
class DriftView:
    """All of it."""

    lanes: tuple[Lane, ...]
    """`served` first."""
    blocks: tuple[Block, ...]
    differences: tuple[Difference, ...]


def load_conversation(session_id: UUID, seq: int) -> Conversation | None:
    """The path that ends at a node; None where there is no such node."""
    turns = settled(read.load_turns(ORM, session_id, seq))
    if not turns:
        return None
    messages = settled(attach.load_path_messages(ORM, session_id, seq))
    head = settled(attach.load_head(ORM, session_id, turns[-1].node.head_digest))
    assert head is not None  # a foreign key holds it
    stored = reading.stored_messages(messages)
    return Conversation(
        served=reading.tokens_of(turns),
        stored=stored,
        client=[*deque(reading.raw_requests(turns, messages), maxlen=1)[0], stored[-1]],
        tools=json.loads(head.tools) if head.tools is not None else None,
        template_kwargs=json.loads(head.template_kwargs),
        tokenizer_fingerprint=head.tokenizer_fingerprint,
        template_fingerprint=head.template_fingerprint,
        began=turns[0].arrived_at,
    )


def compare_lanes(conversation: Conversation, renderer: Renderer) -> DriftView:
    """The lanes under a renderer of the path's tokenizer."""
    bound = renderer.with_kwargs(conversation.template_kwargs)
    served, _ = comparable(bound, conversation.served, EMPTY_IDS)
    lanes = (
        Lane("served", served, None, len(conversation.served) - len(served), ()),
        _fresh("stored", conversation.stored, conversation, bound),
        _fresh("client", conversation.client, conversation, bound),
    )
    return _compared(lanes, bound)


def _fresh(name: str, messages: list[Any], conversation: Conversation, renderer: Renderer) -> Lane:
    try:
        tools, began = conversation.tools or None, conversation.began
        ids = renderer.render(messages, tools, add_generation_prompt=False, when=began)
        served, kept = comparable(renderer, conversation.served, ids)
        mismatches = tuple(renderer.compare(kept, served))
    except Exception as error:
        return Lane(name, EMPTY_IDS, str(error) or type(error).__name__, 0, ())
    return Lane(name, kept, None, len(ids) - len(kept), mismatches)


def _compared(lanes: tuple[Lane, ...], renderer: Renderer) -> DriftView:
    special = renderer.comparison.special_ids
    shown = [lane for lane in lanes if lane.unavailable is None]
    blocks = [_widened(block, lanes) for block in align([lane.ids for lane in shown], special)]
    decode = _decoder(renderer)
    differences = [
        Difference(block, tuple(_kind(block, lanes, at, renderer, decode) for at in range(len(lanes))))
        for block in blocks
        if not block.equal
    ]
    return DriftView(lanes, tuple(blocks), tuple(differences))


def _widened(block: Block, lanes: Sequence[Lane]) -> Block:
    """The block with an empty stretch for each lane that could not be rendered."""
    bounds = iter(block.bounds)
    return Block(block.equal, tuple(next(bounds) if lane.unavailable is None else (0, 0) for lane in lanes))


def _decoder(renderer: Renderer) -> Callable[[Ids], str]:
    return lambda ids: renderer.decode(np.asarray(ids, dtype=np.int32)) if len(ids) else ""


def _kind(
    block: Block, lanes: Sequence[Lane], at: int, renderer: Renderer, decode: Callable[[Ids], str]
) -> str | None:
    if at == 0 or lanes[at].unavailable is not None:
        return None
    served = lanes[0].ids[slice(*block.bounds[0])]
    fresh = lanes[at].ids[slice(*block.bounds[at])]
    if np.array_equal(served, fresh):
        return None
    special = renderer.comparison.special_ids
    marks = [[int(number) for number in ids if int(number) in special] for ids in (served, fresh)]
    if marks[0] != marks[1]:
        return "special_token_type" if len(marks[0]) == len(marks[1]) else "special_token_count"
    if decode(served) == decode(fresh):
        return "respelled"
    spoken = _spoken(lanes[0].ids, block.bounds[0][0], renderer, decode)
    return "assistant_text" if spoken else "non_assistant_text"


def _spoken(ids: Ids, at: int, renderer: Renderer, decode: Callable[[Ids], str]) -> bool:
    """Whether the id at a place stands in an assistant's turn."""
    rules = renderer.comparison
    marks = np.flatnonzero(np.isin(ids[:at], list(rules.special_ids)))
    if not marks.size or not rules.assistant_prefix:
        return False
    start = int(marks[-1])
    return decode(ids[start : start + 1 + _OPENING_IDS]).startswith(rules.assistant_prefix)
