"""JSON values compared: which spellings of an absent field are the same, and equality that never overflows.

Invariant: `equal` is Python's `==` and `same_types` is `==` with the types kept apart at every level; both
answer for any depth of nesting.
"""

from collections.abc import Callable
from typing import Any


def present(value: Any) -> Any:
    """The value, with null, empty string and empty list made one: null."""
    return None if type(value) in (str, list) and not value else value


def without_index(call: Any) -> Any:
    """A tool call without its streaming position, which clients add and drop at will."""
    if isinstance(call, dict) and "index" in call:
        return {name: value for name, value in call.items() if name != "index"}
    return call


def equal(left: Any, right: Any) -> bool:
    """Python's `==`: 1, 1.0 and True are the same, key order is free, list order is not."""
    try:
        return bool(left == right)
    except RecursionError:
        return _same(left, right, _same_kind)


def same_types(left: Any, right: Any) -> bool:
    """`==` with 1, 1.0 and True kept apart at every level."""
    return _same(left, right, lambda a, b: type(a) is type(b))


def _same_kind(left: Any, right: Any) -> bool:
    return all(isinstance(left, kind) == isinstance(right, kind) for kind in (dict, list))


def _same(left: Any, right: Any, comparable: Callable[[Any, Any], bool]) -> bool:
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if not comparable(a, b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            pending.extend((value, b[name]) for name, value in a.items())
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True
