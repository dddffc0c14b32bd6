"""Stored turns back as requests and replies: the inverse of `recording`, for GET and for replayed replies."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sessions_app.backends.reply import client_reply
from sessions_app.json_text import text_of
from sessions_app.packing import Ids, Logprobs
from sessions_app.store.attach import join_deltas
from sessions_app.store.read import LateRow
from sessions_app.store.values import PathMessage, TurnRow
from sessions_app.turns import recording

_BUILT = text_of({recording.MARKER: recording.BUILT})[:-1]
"""How the text of a reply begins that this server made of ids."""


def prompts_of(turns: Sequence[TurnRow]) -> Iterator[Ids]:
    """The ids fed in each turn of a path that begins at its root, one at a time."""
    served = join_deltas([])
    for turn in turns:
        kept = served[: len(served) - turn.boundary_trim] if turn.boundary_trim else served
        prompt = np.concatenate([kept, turn.prompt_delta])
        served = np.concatenate([prompt, turn.completion])
        yield prompt


def tokens_of(turns: Sequence[TurnRow]) -> Ids:
    """Every id of a path."""
    return join_deltas([(turn.boundary_trim, turn.prompt_delta, turn.completion) for turn in turns])


def raw_requests(turns: Sequence[TurnRow], messages: Sequence[PathMessage]) -> Iterator[list[Any]]:
    """The messages of each turn's request as the client spelled them, one turn at a time."""
    by_node: dict[int, list[PathMessage]] = {}
    for message in messages:
        by_node.setdefault(message.node_seq, []).append(message)
    leading: list[Any] = []
    path: list[Any] = []
    for turn in turns:
        if turn.raw_leading is not None:
            leading = respelled(path, turn.raw_leading)
        elif turn.raw_reply is not None:
            leading = [*leading[:-1], json.loads(turn.raw_reply)]
        own = [(message.generated, json.loads(message.body)) for message in by_node.get(turn.node.seq, [])]
        path += [message for _, message in own]
        request = [*leading, *(message for generated, message in own if not generated)]
        yield request
        leading = [*request, *(message for generated, message in own if generated)]


def respelled(stored: Sequence[Any], leading: str) -> list[Any]:
    """Stored messages of a path with those that a request spelled its own way in their place."""
    own = json.loads(leading)
    if isinstance(own, list):
        return own
    return [own.get(str(index), message) for index, message in enumerate(stored)]


def request_of(
    turn: TurnRow, prompt: Ids, messages: list[Any], *, with_tokens: bool = True
) -> dict[str, Any]:
    """The outgoing body of a turn; null in place of ids where they are not wanted."""
    values = {
        recording.MESSAGES: messages,
        recording.TOOLS: json.loads(turn.tools) if turn.tools is not None else None,
        recording.PROMPT: prompt if with_tokens else None,
    }
    return _filled(json.loads(turn.request_params or "{}"), values)


def reply_of(
    turn: TurnRow, prompt: Ids, side: dict[str, bytes] | None = None, *, with_tokens: bool = True
) -> dict[str, Any]:
    """The engine's reply of a turn; `side`: replay payloads to put back. Null for ids that are not wanted."""
    names = (recording.PROMPT, recording.COMPLETION, recording.LOGPROBS)
    values: dict[str, Any] = dict.fromkeys(names)
    if with_tokens:
        entries = _entries(turn.logprobs, turn.completion, turn.logprob_texts)
        values = dict(zip(names, (prompt, turn.completion, entries), strict=True))
    reply = _filled_reply(_unmarked(turn.response), values)
    for kind, payload in (side or {}).items():
        reply["choices"][0]["meta_info"][kind] = base64.b64encode(payload).decode()
    return reply


def late_reply(late: LateRow, served: Ids) -> dict[str, Any]:
    """The reply of a request that became no node. `served`: ids of its attach point."""
    values = {
        recording.PROMPT: np.concatenate([served[: late.reused], late.prompt]),
        recording.COMPLETION: late.completion,
        recording.LOGPROBS: _entries(late.logprobs, late.completion, late.logprob_texts),
    }
    return _filled_reply(_unmarked(late.response), values)


def told(response: str, reply: Mapping[str, Any]) -> dict[str, Any]:
    """A reply as its client saw it. `response`: the stored text that it was read from."""
    shown = client_reply(reply)
    if not response.startswith(_BUILT):
        return shown
    hidden = "meta_info"
    choices = [
        {name: value for name, value in choice.items() if name != hidden} for choice in shown["choices"]
    ]
    return {**shown, "choices": choices}


def _unmarked(response: str) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(response)
    if response.startswith(_BUILT):
        del reply[recording.MARKER]
    return reply


def _entries(logprobs: Logprobs, ids: Ids, texts: str | None) -> list[list[Any]]:
    pairs = zip(logprobs.tolist(), ids.tolist(), strict=True)
    if texts is None:
        return [[logprob, token, None] for logprob, token in pairs]
    rest: Iterable[list[Any]] = json.loads(texts)
    return [[logprob, token, *more] for (logprob, token), more in zip(pairs, rest, strict=True)]


def _filled(holder: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """An object whose values are put back where a marker stands for them. Looks no deeper: `recording` does
    not.
    """
    return {
        name: _restored(value, values) if recording.is_marker(value) else value
        for name, value in holder.items()
    }


def _restored(value: dict[str, Any], values: dict[str, Any]) -> Any:
    name = value[recording.MARKER]
    return value[recording.WRAPPED] if name == recording.WRAPPED else values[name]


def _filled_reply(reply: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A reply with its arrays, which stand at the top, in the first choice and in its `meta_info`."""
    filled = {**reply, **_filled(_own_arrays(reply, "prompt_token_ids"), values)}
    choices = filled.get("choices")
    if choices:
        filled["choices"] = [_filled_choice(choices[0], values), *choices[1:]]
    return filled


def _filled_choice(choice: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    filled = {**choice, **_filled(_own_arrays(choice, "token_ids", "prompt_token_ids"), values)}
    meta = choice.get("meta_info")
    if isinstance(meta, dict):
        filled["meta_info"] = {**meta, **_filled(_own_arrays(meta, "output_token_logprobs"), values)}
    return filled


def _own_arrays(holder: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: holder[name] for name in names if name in holder}


def stored_messages(messages: Sequence[PathMessage]) -> list[Any]:
    """The effective history of a path: what was stored, not what was replayed."""
    return [json.loads(message.body) for message in messages]
