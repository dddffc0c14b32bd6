"""Dotted keys, written down as plainly as they are described."""

from typing import Any


def unflatten(attributes: dict[str, Any], prefix: str) -> Any:
    if prefix in attributes:
        raise ValueError(f"Cannot unflatten attribute with key exactly equal to prefix: {prefix}")
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix + "."):
            continue
        parts = key[len(prefix) + 1 :].split(".")
        place = tree
        for part in parts[:-1]:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = place[part]
        place[parts[-1]] = value
    return _listed(tree)


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    value = {key: _listed(item) for key, item in value.items()}
    wanted = [str(number) for number in range(len(value))]
    if value and sorted(value) == sorted(wanted):
        return [value[key] for key in wanted]
    return value


def first_nested(attributes: dict[str, Any], *prefixes: str) -> Any:
    for prefix in prefixes:
        found = unflatten(attributes, prefix)
        if found:
            return found
    return None


def first_string(attributes: dict[str, Any], *names: str) -> str | None:
    return next((attributes[name] for name in names if isinstance(attributes.get(name), str)), None)


def first_ids(attributes: dict[str, Any], *names: str) -> list[int]:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, list) and all(type(item) in (int, bool) for item in value):
            return value
    return []
