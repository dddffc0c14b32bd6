"""Dotted keys to nested values as the messages adapter does it, which is not the rule of
`attributes.unflatten`.

One digit segment makes the level a list in numeric order, whatever else stands beside it (that is dropped);
gaps close.
"""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.attributes import Nested


def grouped_under(attributes: Mapping[str, Any], prefix: str) -> Nested:
    """Everything below `prefix`; {} when there is nothing."""
    start = prefix + "."
    return _grouped({key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)})


def _grouped(flat: Mapping[str, Any]) -> Nested:
    if any(_is_position(key) for key in flat):
        return _as_list(flat)
    return _as_dict(flat)


def _is_position(key: str) -> bool:
    return key.split(".", 1)[0].isdigit()


def _as_list(flat: Mapping[str, Any]) -> list[Any]:
    items: dict[int, dict[str, Any]] = {}
    for key, value in flat.items():
        if _is_position(key):
            position, _, rest = key.partition(".")
            items.setdefault(int(position), {})[rest] = value
    return [_grouped(items[position]) for position in sorted(items)]


def _as_dict(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Plain keys first; a branch of the same name replaces the plain value."""
    result: dict[str, Any] = {}
    branches: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        head, dot, rest = key.partition(".")
        if dot:
            branches.setdefault(head, {})[rest] = value
        else:
            result[key] = value
    return result | {head: _grouped(branch) for head, branch in branches.items()}
