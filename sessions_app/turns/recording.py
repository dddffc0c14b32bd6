"""What a record keeps of a request and of a reply: everything, but nothing twice.

Arrays and texts that are stored elsewhere leave a marker `{"$tito": NAME}` in their place, so that key
order and values come back as they were; what a client sent in that form is wrapped, and comes back too.
`reading` is the way back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sessions_app.backends.base import Generation
from sessions_app.backends.reply import ROUTED_EXPERTS
from sessions_app.history.passing import Pair
from sessions_app.json_text import RawJson, loads, storable, text_of
from sessions_app.packing import Ids
from sessions_app.store.values import AttachRow, PathMessage, Reply, SideData
from sessions_app.turns.beginnings import Spelling, spelling_digest
from sessions_app.turns.values import ChatRequest

MARKER, WRAPPED = "$tito", "value"
REPLAYED = "replayed"
"""In `client_params`: what a protocol's client replayed otherwise than it is stored, by message."""
SIDECARS = "sidecars"
"""In `client_params`, until the turn is committed: those of its new messages."""
MESSAGES, TOOLS, PROMPT, COMPLETION, LOGPROBS = "messages", "tools", "prompt", "completion", "logprobs"
BUILT = "built"
"""Mark of a whole reply that is ours, for an engine that answers with ids: clients never see its
`meta_info`."""


def marker(name: str) -> dict[str, str]:
    """What stands where something stored elsewhere was."""
    return {MARKER: name}


def request_params(body: Mapping[str, Any], prompt: Ids) -> str:
    """The outgoing body as JSON text, without conversation, tools and ids."""
    return text_of({name: _param(name, value, prompt) for name, value in body.items()})


def own_params(request: ChatRequest, raw: "RawDelta", *, unstored_from: int | None = None) -> str | None:
    """What a client of another protocol said beside the messages as they are stored; None of other clients.

    `unstored_from`: messages from here on are not stored yet.
    """
    if request.own_params is None:
        return None
    beside = {REPLAYED: raw.beyond}
    if unstored_from is not None:
        beside[SIDECARS] = _sidecars(request, unstored_from)
    kept = {
        name: {str(index): RawJson(text) for index, text in texts.items()}
        for name, texts in beside.items()
        if texts
    }
    return text_of({**request.own_params, **kept})


def _sidecars(request: ChatRequest, start: int) -> dict[int, str]:
    pairs = ((index, request.sidecars.get(index)) for index in range(start, len(request.messages)))
    return {index: text for index, text in pairs if text is not None}


def client_params(
    request: ChatRequest,
    outgoing: Mapping[str, Any],
    sent_as_chat: bool,
    raw: "RawDelta",
    first_new: int,
) -> str | None:
    """What the client asked for and the outgoing body does not say; None where that says it all."""
    if request.own_params is not None:
        return own_params(request, raw, unstored_from=first_new)
    kept = {name: value for name, value in request.body.items() if name not in (MESSAGES, TOOLS)}
    if sent_as_chat:
        kept = {name: value for name, value in kept.items() if not _says(outgoing, name, value)}
    return text_of(kept) if kept else None


def _says(outgoing: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a body was sent with the client's own value: it may have been forced, limited or left out."""
    if name not in outgoing:
        return False
    sent = outgoing[name]
    return sent is value or (type(sent) is type(value) and sent == value)


def _param(name: str, value: Any, prompt: Ids) -> Any:
    if value is prompt:
        return marker(PROMPT)
    if name == "messages":
        return marker(MESSAGES)
    if name == "tools" and value:
        return marker(TOOLS)
    return {MARKER: WRAPPED, WRAPPED: value} if is_marker(value) else value


def is_marker(value: Any) -> bool:
    """Whether a value has the form of a marker."""
    return isinstance(value, dict) and MARKER in value


_NOT_COMPARED = "{}"
"""Stands in `RawDelta.leading` until the stored path has been compared."""


@dataclass(frozen=True, slots=True)
class RawDelta:
    """The client's own spelling of a request's messages, as a delta against the attach point's record."""

    digest: bytes
    """Of all the request's messages as spelled."""
    base: int
    """Leading messages spelled as in the attach point's record (its reply not counted); 0 = there is no
    base.
    """
    reply: str | None
    """The client's spelling of the attach point's reply, where it differs from the stored one."""
    leading: str | None
    """Where there is no base: JSON object of the matched messages not spelled as stored, by index; JSON list
    of all of them where some are not the stored ones, because they may come and go.
    """
    tail: str
    """JSON list of the new messages."""
    beyond: Mapping[int, str] = field(default_factory=dict)
    """Of replayed messages, what the client of another protocol sent beyond what is stored; where there is
    a base, of the reply alone. JSON lists."""


def raw_delta(
    request: ChatRequest, parent: AttachRow | None, first_new: int, spelling: Spelling | None
) -> RawDelta:
    """How the client spelled the history it replayed. `spelling`: of the request, where it is known."""
    messages = request.messages
    tail = texts_from(request, first_new)
    spelling = spelling or Spelling(spelling_digest(request.spelled), 0, b"")
    digest = spelling.digest
    if parent is None:
        return RawDelta(digest, 0, None, None, tail)
    reply_at = first_new - 1
    if spelling.of_leading(request.spelled, reply_at) != parent.node.raw_digest:
        return RawDelta(digest, 0, None, _NOT_COMPARED, tail)
    reply = text_of(messages[reply_at])
    position = parent.node.message_count - 1
    stored = PathMessage(parent.node.seq, position, parent.reply_body, generated=True)
    own = request.own.beyond(reply_at, stored) if request.own else None
    kept = {} if own is None else {reply_at: own}
    return RawDelta(digest, reply_at, None if reply == parent.reply_body else reply, None, tail, kept)


def beyond(request: ChatRequest, stored: Sequence[PathMessage], pairs: Sequence[Pair]) -> dict[int, str]:
    """What the client replayed otherwise than it is stored, by index. `pairs`: of stored and replayed."""
    if request.own is None:
        return {}
    found = (
        (index, request.own.beyond(index, stored[at] if at is not None else None))
        for at, index in pairs
        if index is not None
    )
    return {index: own for index, own in found if own is not None}


def respelled(messages: Sequence[Any], stored: Sequence[PathMessage], pairs: Sequence[Pair]) -> str:
    """The replayed messages whose spelling is not the stored one, by index, as a JSON object; all of them as
    a list where they do not stand one to one.
    """
    if any(at != index for at, index in pairs):
        return text_of(list(messages))
    return text_of(
        {
            str(index): messages[index]
            for index in range(len(pairs))
            if spelling_digest([messages[index]]) != spelling_digest([loads(stored[index].body.encode())])
        }
    )


def texts_from(request: ChatRequest, start: int) -> str:
    """The messages from `start` on as a JSON list, as they were spelled."""
    return "[" + ",".join(request.texts.text(index) for index in range(start, len(request.messages))) + "]"


def joined(prompt: Ids, completion: Ids) -> Ids:
    """What a node's tokens are after its generation, read-only."""
    tokens = np.concatenate([prompt, completion])
    tokens.setflags(write=False)
    return tokens


def built_reply(generation: Generation, body: Mapping[str, Any]) -> dict[str, Any]:
    """A reply that was made of ids, with what the engine reported beside them, as SGLang's chat replies have
    it."""
    told = {
        "prompt_tokens": body["usage"]["prompt_tokens"],
        "completion_tokens": generation.completion_tokens,
        "cached_tokens": generation.cached_tokens,
        "weight_version": generation.weight_version,
        "e2e_latency": generation.engine_seconds,
    }
    meta = {
        "output_token_logprobs": marker(LOGPROBS),
        **{name: value for name, value in told.items() if value is not None},
        **generation.extras,
    }
    choices = [{**choice, "meta_info": meta} for choice in body["choices"]]
    return {MARKER: BUILT, **body, "choices": choices}


def stored_reply(
    generation: Generation,
    reply: Mapping[str, Any],
    *,
    ill_formed: bool,
    engine_ms: float,
    layers: int | None,
    start_row: int | None,
) -> Reply:
    """A reply in the form it is stored. `layers`: of routed-experts rows, None = unknown; `start_row`: the
    first of them that was asked for, None = all were."""
    return replace(
        _reply(generation, text_of(_without_arrays(reply)), engine_ms),
        logprob_texts=_logprob_texts(reply),
        ill_formed=ill_formed,
        side=tuple(
            SideData(kind, data, start_row if kind == ROUTED_EXPERTS else None, layers)
            for kind, data in generation.side.items()
        ),
    )


def bare_reply(generation: Generation, engine_ms: float) -> Reply:
    """What was generated and no more, where the whole reply cannot be written."""
    return _reply(generation, storable(generation.reply_text) or "{}", engine_ms)


def _reply(generation: Generation, response: str, engine_ms: float) -> Reply:
    return Reply(
        completion=generation.ids,
        logprobs=generation.logprobs,
        logprob_texts=None,
        response=response,
        response_id=_storable(generation.response_id),
        finish_reason=generation.finish_reason,
        raw_finish_reason=_storable(generation.raw_finish_reason),
        weight_version=_storable(generation.weight_version),
        cached_tokens=generation.cached_tokens,
        worker=generation.worker,
        engine_ms=engine_ms,
        ill_formed=False,
    )


def _storable(text: str | None) -> str | None:
    return text if text is None else storable(text)


def _without_arrays(reply: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(reply)
    if isinstance(kept.get("prompt_token_ids"), list):
        kept["prompt_token_ids"] = marker(PROMPT)
    choices = kept.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        kept["choices"] = [_choice_without_arrays(choices[0]), *choices[1:]]
    return kept


def _choice_without_arrays(choice: dict[str, Any]) -> dict[str, Any]:
    kept = dict(choice)
    for name, stands_for in (("token_ids", COMPLETION), ("prompt_token_ids", PROMPT)):
        if isinstance(kept.get(name), list):
            kept[name] = marker(stands_for)
    meta = kept.get("meta_info")
    if isinstance(meta, dict) and "output_token_logprobs" in meta:
        kept["meta_info"] = {**meta, "output_token_logprobs": marker(LOGPROBS)}
    return kept


def _logprob_texts(reply: Mapping[str, Any]) -> str | None:
    """What the engine's logprob entries hold beyond logprob and id; None where that is a null each."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    meta = choices[0].get("meta_info")
    entries = meta.get("output_token_logprobs") if isinstance(meta, dict) else None
    if not isinstance(entries, list):
        return None
    rest = [entry[2:] for entry in entries]
    return text_of(rest) if any(one != [None] for one in rest) else None
