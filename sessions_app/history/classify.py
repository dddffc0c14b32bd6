"""The cause of a turn that was no plain continuation, read off the stored path and the request.

Invariant: pure and deterministic; the first rule that holds decides, in this order.

1. The request ends inside the path. Only a reply is left over: `retry`; more, or nothing: `history_shorter`.
2. The path ends inside the request, and nothing differs: `message_inserted`. 3. The first differing pair is
one message respelled: `reasoning_dropped`, `content_blank_difference`, `role_changed`,
`tool_arguments_spelling` (in this order, if the pair matches once that is mended). 4. System messages differ
at the head, and the conversation below goes on, its next reply respelled or not: `system_changed`. 5. The
next messages match again one to one: the pair was edited (rule 8). 6. The request goes on at a later stored
message: `message_removed`; the path at a later message of the request: `message_inserted`. 7. Nothing but
system messages is shared: `unrelated_history`. 8. Otherwise the pair was edited: `system_changed`,
`assistant_edited` or `message_edited` by its role; a reply in place of another role or the reverse is
`message_inserted` or `message_removed`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sessions_app.history.causes import Cause
from sessions_app.history.differences import accepts, refuses_part
from sessions_app.history.matchers.arguments import loose_form
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.matchers.values import equal, present

_SYSTEM_ROLES = ("system", "developer")
_UNREADABLE = "-"


def classify(
    stored: Sequence[Message], replayed: Sequence[Message], matcher: MessageMatcher, matched: int
) -> Cause:
    """Why a request does not simply continue the path it came closest to.

    stored: all messages of that path, down to a leaf. matched: leading messages the matcher accepted.
    """
    if matched == len(replayed):
        only_reply = len(stored) == matched + 1 and _role(stored[matched]) == "assistant"
        return Cause.RETRY if only_reply else Cause.HISTORY_SHORTER
    if matched == len(stored):
        return Cause.MESSAGE_INSERTED
    pair = stored[matched], replayed[matched]
    return _respelling(*pair, matcher) or _restructuring(stored, replayed, matched, matcher) or _edit(*pair)


def _respelling(stored: Message, replayed: Message, matcher: MessageMatcher) -> Cause | None:
    """The cause if both are one message but for its spelling."""
    mended = dict(replayed)
    causes = []
    for cause, field, value in _mendings(stored, replayed):
        if refuses_part(matcher, stored, [field], replayed.get(field)):
            causes.append(cause)
        mended[field] = value
    return next(iter(causes), None) if accepts(matcher, stored, mended) else None


def _mendings(stored: Message, replayed: Message) -> Iterator[tuple[Cause, str, Any]]:
    """Fields of a pair that differ in spelling or in the role, and the value that mends the replay."""
    reasoning = present(stored.get("reasoning_content")), present(replayed.get("reasoning_content"))
    if reasoning[0] is not None and reasoning[1] is None:
        yield Cause.REASONING_DROPPED, "reasoning_content", reasoning[0]
    if equal(_squeezed(stored.get("content")), _squeezed(replayed.get("content"))):
        yield Cause.CONTENT_BLANK_DIFFERENCE, "content", stored.get("content")
    if _role(stored) != _role(replayed):
        yield Cause.ROLE_CHANGED, "role", stored.get("role")
    calls, respelled = stored.get("tool_calls"), replayed.get("tool_calls")
    if isinstance(calls, list) and isinstance(respelled, list) and len(calls) == len(respelled):
        yield Cause.TOOL_ARGUMENTS_SPELLING, "tool_calls", list(map(_with_stored_arguments, calls, respelled))


def _with_stored_arguments(stored: Any, replayed: Any) -> Any:
    """The replayed call in the stored call's spelling, if its arguments say the same."""
    function, respelled = _function(stored), _function(replayed)
    form = loose_form(function.get("arguments", _UNREADABLE))
    if form is None or form != loose_form(respelled.get("arguments", _UNREADABLE)):
        return replayed
    return {**replayed, "function": {**respelled, "arguments": function["arguments"]}}


def _function(call: Any) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else {}


def _restructuring(
    stored: Sequence[Message], replayed: Sequence[Message], at: int, matcher: MessageMatcher
) -> Cause | None:
    """The cause if the two histories meet again further on, or share nothing at all."""
    heads = _system_end(stored, at), _system_end(replayed, at)
    at_head = _system_end(stored, 0) >= at
    if at_head and heads != (at, at) and _goes_on(stored, heads[0], replayed, heads[1], matcher):
        return Cause.SYSTEM_CHANGED
    if _meet(stored, at + 1, replayed, at + 1, matcher):
        return None
    if any(_meet(stored, later, replayed, at, matcher) for later in range(at + 1, len(stored))):
        return Cause.MESSAGE_REMOVED
    if any(_meet(stored, at, replayed, later, matcher) for later in range(at + 1, len(replayed))):
        return Cause.MESSAGE_INSERTED
    return Cause.UNRELATED_HISTORY if at_head else None


def _edit(stored: Message, replayed: Message) -> Cause:
    roles = _role(stored), _role(replayed)
    if roles[0] in _SYSTEM_ROLES and roles[1] in _SYSTEM_ROLES:
        return Cause.SYSTEM_CHANGED
    if roles[0] == roles[1]:
        return Cause.ASSISTANT_EDITED if roles[0] == "assistant" else Cause.MESSAGE_EDITED
    if "assistant" not in roles:
        return Cause.MESSAGE_EDITED
    return Cause.MESSAGE_REMOVED if roles[0] == "assistant" else Cause.MESSAGE_INSERTED


def _goes_on(
    stored: Sequence[Message], at: int, replayed: Sequence[Message], there: int, matcher: MessageMatcher
) -> bool:
    """Whether the histories are the same here and, where both go on, say the same next."""
    pairs = list(zip(stored[at : at + 2], replayed[there : there + 2], strict=False))
    if not pairs or not accepts(matcher, *pairs[0]):
        return False
    return all(accepts(matcher, *pair) or _respelling(*pair, matcher) is not None for pair in pairs[1:])


def _meet(
    stored: Sequence[Message], at: int, replayed: Sequence[Message], there: int, matcher: MessageMatcher
) -> bool:
    """Whether the histories are the same at these positions, and at the next ones where both go on."""
    pairs = list(zip(stored[at : at + 2], replayed[there : there + 2], strict=False))
    return bool(pairs) and all(accepts(matcher, *pair) for pair in pairs)


def _system_end(messages: Sequence[Message], start: int) -> int:
    """The first position from `start` on that holds no system message."""
    return next(
        (at for at in range(start, len(messages)) if _role(messages[at]) not in _SYSTEM_ROLES), len(messages)
    )


def _role(message: Message) -> Any:
    return present(message.get("role"))


def _squeezed(content: Any) -> Any:
    """A content without its white space; texts in parts likewise."""
    if content is None or isinstance(content, str):
        return "".join((content or "").split())
    if isinstance(content, list):
        return [_squeezed_part(part) for part in content]
    return content


def _squeezed_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {**part, "text": "".join(part["text"].split())}
    return part
