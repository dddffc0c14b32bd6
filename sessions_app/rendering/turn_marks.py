"""Which tokens end a generated turn in a template: read off its closes, or off what opens the next message.

Invariant: only marks count, tokens that are never part of text, so nothing that a model says can be taken
for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from sessions_app.rendering.closing import Close, Closing
from sessions_app.rendering.dummy import ONE_CALL, TEXT_TURN, TOOL, results_of
from sessions_app.rendering.protocol import Ids, Message, RendererRefused
from sessions_app.rendering.tokenizer import ChatTokenizer

ROLES = ("assistant", "system", "tool", "user")
_NEW_SENTINEL = "Xq7tito4Znew9Kend"


@dataclass(frozen=True, slots=True)
class TurnMarks:
    """What one template says about the ends of turns."""

    closes: tuple[Close, ...]
    """Of turns of text and of turns with a call, without and with tools, where they are known."""
    closers: frozenset[int]
    """Ids that close a turn."""
    openers: frozenset[int]
    """Ids that open the next message and are the stop tokens where a turn has no close."""
    append_roles: frozenset[str]
    """Roles of messages that may follow a generated turn, also where served ids cannot be continued."""


def learn(closing: Closing, tokenizer: ChatTokenizer) -> TurnMarks:
    """A dozen renders of short dummy conversations."""
    closes = _known_closes(closing)
    deltas = {role: delta for role in ROLES if (delta := _probed_delta(closing, tokenizer, role)) is not None}
    closers = frozenset[int]().union(*(_closers_of(close, tokenizer) for close in closes))
    roles = frozenset(role for role in ROLES if role in deltas or _is_printed(closing, role))
    return TurnMarks(closes, closers, _openers(closes, deltas, tokenizer), roles)


def _known_closes(closing: Closing) -> tuple[Close, ...]:
    closes = []
    for turn, tools in product((TEXT_TURN, ONE_CALL), (None, [TOOL])):
        try:
            closes.append(closing.of(turn, tools))
        except RendererRefused:
            continue
    return tuple(closes)


def _probe(role: str) -> tuple[Message, Message]:
    """A dummy turn, and a message of this role that may follow it."""
    if role == "tool":
        return ONE_CALL, {**results_of(ONE_CALL)[0], "content": _NEW_SENTINEL}
    return TEXT_TURN, {"role": role, "content": _NEW_SENTINEL}


def _probed_delta(closing: Closing, tokenizer: ChatTokenizer, role: str) -> Ids | None:
    """Ids that a message of this role adds; None when it cannot be told apart."""
    turn, message = _probe(role)
    for tools in (None, [TOOL]):
        try:
            delta = closing.before(turn, tools, [message])[1]
        except RendererRefused:
            continue
        if _NEW_SENTINEL in delta:
            return tokenizer.encode(delta)
    return None


def _is_printed(closing: Closing, role: str) -> bool:
    turn, message = _probe(role)
    return any(closing.prints_behind(turn, message, tools) for tools in (None, [TOOL]))


def _closers_of(close: Close, tokenizer: ChatTokenizer) -> set[int]:
    """The configured end of generation if the close has it, else its last mark; and what stands in its
    place at the very end of a conversation."""
    marks = [number for number in close.ids.tolist() if number in tokenizer.marks]
    ends = [number for number in marks if number in tokenizer.end_ids]
    closers = set((ends or marks)[-1:])
    at_end = tokenizer.encode(close.at_end).tolist()
    first = next((number for number in at_end if number in tokenizer.marks), None)
    return closers | {first} if marks and first is not None and first not in marks else closers


def _openers(
    closes: tuple[Close, ...], deltas: Mapping[str, Ids], tokenizer: ChatTokenizer
) -> frozenset[int]:
    text_close = next(iter(closes), None)
    if text_close is None or any(number in tokenizer.marks for number in text_close.ids.tolist()):
        return frozenset()
    firsts = (int(delta[0]) for role, delta in deltas.items() if role != "assistant" and delta.size)
    return frozenset(firsts) & tokenizer.marks
