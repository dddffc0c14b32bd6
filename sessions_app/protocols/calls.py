"""Tool calls between protocols: ids and arguments, there and back again.

Invariant: a call that a client replays as it was told comes back with the id and the arguments that are
stored, as far as its protocol can say them.
"""

import json
from typing import Any
from uuid import uuid4

RAW_ARGUMENTS = "_raw_arguments"
"""Key that carries arguments which are no JSON object, where a protocol takes objects only."""
_READABLE = json.JSONEncoder(ensure_ascii=False)
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
        value = json.loads(arguments)
    except (ValueError, TypeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def arguments_text(value: dict[str, Any]) -> str:
    """The arguments of an object, spelled as most engines spell them; keys stay in the client's order."""
    if len(value) == 1 and isinstance(value.get(RAW_ARGUMENTS), str):
        return str(value[RAW_ARGUMENTS])
    text = _READABLE.encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
