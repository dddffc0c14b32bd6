"""Reading flat attributes: first candidate of several, and dotted keys back to nested values.

A dict whose keys are the digit strings 0..n-1 is a list; with a gap or another key it stays a dict with
text keys.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Nested = dict[str, Any] | list[Any]


def first_text(attributes: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first name that holds text; names that hold something else are passed over."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str):
            return value
    return None


def first_ids(attributes: Mapping[str, Any], names: Iterable[str]) -> list[int]:
    """The first name that holds a list of whole numbers (booleans pass, an empty list is a hit); [] when
    none does.
    """
    for name in names:
        value = attributes.get(name)
        if isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
            return list(value)
    return []


def first_nested(attributes: Mapping[str, Any], prefixes: Iterable[str]) -> Nested | None:
    """What stands under the first prefix that has anything; later prefixes are not looked at."""
    for prefix in prefixes:
        nested = nested_under(attributes, prefix)
        if nested:
            return nested
    return None


def nested_under(attributes: Mapping[str, Any], prefix: str) -> Nested:
    """All attributes below `prefix`, nested; {} when there are none."""
    if prefix in attributes:
        raise ValueError(f"Cannot unflatten attribute with key exactly equal to prefix: {prefix}")
    start = prefix + "."
    return unflatten({key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)})


def unflatten(flat: Mapping[str, Any]) -> Nested:
    """Dotted keys to nested dicts and lists; where a scalar and a branch share a name the later one wins."""
    root: dict[str, Any] = {}
    for key, value in flat.items():
        *branches, leaf = key.split(".")
        node = root
        for branch in branches:
            if not isinstance(node.get(branch), dict):
                node[branch] = {}
            node = node[branch]
        node[leaf] = value
    nested: Nested = _with_lists(root)
    return nested


def _with_lists(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    converted = {key: _with_lists(value) for key, value in node.items()}
    positions = [str(position) for position in range(len(converted))]
    if converted and converted.keys() == set(positions):
        return [converted[position] for position in positions]
    return converted
