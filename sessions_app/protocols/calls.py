"""Tool calls between protocols: ids and arguments, there and back again.

Invariant: a call that a client replays as it was told comes back with the id and the arguments that are
stored, as far as its protocol can say them.
"""

import json
from typing import Any, NoReturn
from uuid import uuid4

from sessions_app.json_spans import respaced
from sessions_app.json_text import encodes

RAW_ARGUMENTS = "_raw_arguments"
"""Key that carries arguments which are no JSON object, where a protocol takes objects only."""
_OURS, _ANTHROPIC = "call_", "toolu_"


def anthropic_id(call_id: Any) -> str:
    """The id of a call as Anthropic's clients see it."""
    text = call_id if isinstance(call_id, str) and call_id else _OURS + uuid4().hex[:24]
    return _ANTHROPIC + text.removeprefix(_OURS) if text.startswith(_OURS) else text


def canonical_id(call_id: str) -> str:
    """The stored id behind one that a client of Anthropic's sent."""
    return _OURS + call_id.removeprefix(_ANTHROPIC) if call_id.startswith(_ANTHROPIC) else call_id


def arguments_object(arguments: Any) -> dict[str, Any]:
    """Arguments for a protocol that takes objects; what is none is carried as it stands."""
    if isinstance(arguments, dict):
        return arguments
    if arguments is None or arguments == "":
        return {}
    try:
        value = _DECODER.decode(arguments)
    except (ValueError, TypeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def arguments_text(value: dict[str, Any], spelled: str | None = None) -> str:
    """The arguments of an object, with the blanks that most engines set; keys stay in the client's order.

    `spelled`: the client's own text of the object, whose numbers may say more than their values.
    """
    if len(value) == 1 and isinstance(value.get(RAW_ARGUMENTS), str):
        return str(value[RAW_ARGUMENTS])
    if spelled is not None:
        return respaced(spelled)
    text = _READABLE.encode(value)
    return text if text.isascii() or encodes(text) else respaced(json.dumps(value))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_READABLE = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
