"""Token paths: every id from a root to a node, and whose turn each of them belongs to.

Reads only; one statement per path. The arrays are as long as the path, what is shown of them is a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection

from sessions_app.packing import Ids, Logprobs, unpack_ids, unpack_logprobs
from sessions_app.store.attach import join_deltas

PATH = """
    WITH RECURSIVE path AS (
        SELECT seq, parent_seq FROM sessions_app_node WHERE session_id = %(session)s AND seq = %(seq)s
        UNION ALL
        SELECT n.seq, n.parent_seq FROM sessions_app_node n
        JOIN path ON n.session_id = %(session)s AND n.seq = path.parent_seq
    )
"""
_TURNS = (
    PATH
    + """
    SELECT n.seq, n.finish_reason, n.weight_version_dispatch, n.weight_version, h.tokenizer_fingerprint,
        c.boundary_trim, c.glue_tokens, c.prompt_delta, c.completion, c.logprobs, c.logprob_width
    FROM path
    JOIN sessions_app_node n ON n.session_id = %(session)s AND n.seq = path.seq
    JOIN sessions_app_requesthead h ON h.session_id = %(session)s AND h.digest = n.head_digest
    JOIN sessions_app_tokencheckpoint c ON c.session_id = %(session)s AND c.node_seq = path.seq
    ORDER BY n.seq
    """
)


@dataclass(frozen=True, slots=True)
class PathTurn:
    """What one node adds to its path."""

    seq: int
    finish_reason: str
    version_dispatch: str | None
    version: str | None
    tokenizer_fingerprint: str
    trim: int
    """Ids that it drops from the end of the path above it."""
    glue: int
    """Leading ids of the prompt delta that close the turn before."""
    prompt: Ids
    completion: Ids
    logprobs: Logprobs


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """Where a turn stands among the ids of its path."""

    turn: PathTurn
    start: int
    """First id of its prompt delta."""
    spoken: int
    """First id of its completion."""
    end: int
    """One behind its last id that the path keeps."""


@dataclass(frozen=True, slots=True)
class TokenPath:
    """A path's ids with the turns they come from."""

    ids: Ids
    spans: tuple[TurnSpan, ...]

    @property
    def tokenizers(self) -> frozenset[str]:
        """Fingerprints of the tokenizers that its ids are of."""
        return frozenset(span.turn.tokenizer_fingerprint for span in self.spans)


def load_path(session_id: UUID, seq: int) -> TokenPath:
    """The path that ends at a node; an empty one where there is no such node."""
    with connection.cursor() as cursor:
        cursor.execute(_TURNS, {"session": session_id, "seq": seq})
        turns = [_turn(row) for row in cursor.fetchall()]
    return path_of(turns)


def _turn(row: tuple[Any, ...]) -> PathTurn:
    seq, finish, dispatched, reported, tokenizer, trim, glue, prompt, completion, logprobs, width = row
    return PathTurn(
        seq=seq,
        finish_reason=finish,
        version_dispatch=dispatched,
        version=reported,
        tokenizer_fingerprint=tokenizer,
        trim=trim,
        glue=glue,
        prompt=unpack_ids(bytes(prompt)),
        completion=unpack_ids(bytes(completion)),
        logprobs=unpack_logprobs(bytes(logprobs), width),
    )


def path_of(turns: Sequence[PathTurn]) -> TokenPath:
    """The ids of these turns, root first, and where each turn stands."""
    spans: list[TurnSpan] = []
    end = 0
    for at, turn in enumerate(turns):
        start = end - turn.trim
        spoken = start + len(turn.prompt)
        end = spoken + len(turn.completion)
        dropped = turns[at + 1].trim if at + 1 < len(turns) else 0
        spans.append(TurnSpan(turn, start, spoken, end - dropped))
    ids = join_deltas([(turn.trim, turn.prompt, turn.completion) for turn in turns])
    return TokenPath(ids, tuple(spans))


def spans_within(path: TokenPath, start: int, stop: int) -> list[TurnSpan]:
    """The turns with an id in this window."""
    ends = np.array([span.end for span in path.spans])
    first = int(np.searchsorted(ends, start, side="right"))
    found = []
    for span in path.spans[first:]:
        if span.start >= stop:
            break
        found.append(span)
    return found
