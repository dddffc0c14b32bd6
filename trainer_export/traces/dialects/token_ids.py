"""Token ids of a call, from the plain attributes or from a recorded response body."""

from collections.abc import Iterator, Sequence
from typing import Any

from trainer_export.traces.attributes import first_ids
from trainer_export.traces.dialects.bodies import first_choice, response_bodies
from trainer_export.traces.names import PROMPT_IDS, RESPONSE_IDS
from trainer_export.traces.python_text import evaluated, id_list
from trainer_export.traces.span import Attributes

_IDS_BELOW = 2**31
"""No vocabulary is larger; ids are stored in 32 bits."""


def prompt_ids(attributes: Attributes) -> list[int]:
    """[] when no dialect has them; unlike the reference an empty list is no hit."""
    return _first(_prompt_candidates(attributes))


def response_ids(attributes: Attributes) -> list[int]:
    """[] when no dialect has them."""
    return _first(_response_candidates(attributes))


def _first(candidates: Iterator[Any]) -> list[int]:
    for candidate in candidates:
        ids = id_list(candidate)
        if ids and are_token_ids(ids):
            return ids
    return []


def are_token_ids(ids: Sequence[int]) -> bool:
    """Whether numbers can be ids of a vocabulary."""
    return all(0 <= token < _IDS_BELOW for token in ids)


def _prompt_candidates(attributes: Attributes) -> Iterator[Any]:
    yield first_ids(attributes, PROMPT_IDS)
    yield attributes.get("prompt_token_ids")
    for body in response_bodies(attributes):
        yield body.get("prompt_token_ids")
        yield first_choice(body).get("prompt_token_ids")


def _response_candidates(attributes: Attributes) -> Iterator[Any]:
    yield first_ids(attributes, RESPONSE_IDS)
    yield attributes.get("response_token_ids")
    for body in response_bodies(attributes):
        nested = id_lists(body.get("response_token_ids"))
        yield nested[0] if nested else None
        choice = first_choice(body)
        yield choice.get("token_ids")
        extra = choice.get("provider_specific_fields")
        yield extra.get("token_ids") if isinstance(extra, dict) else None


def id_lists(value: Any) -> list[Any]:
    """One list of ids per choice."""
    lists = evaluated(value)
    return lists if isinstance(lists, list) and all(isinstance(item, list) for item in lists) else []
