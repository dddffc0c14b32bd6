"""Pages of a long list by place: what comes after a row, or before it, found through the order's index
however deep it is. Numbered pages would read every row that they skip.

Invariant: following *next* from the first page shows every row once that was there all the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Field, Model, Q, QuerySet

AFTER = "after"
BEFORE = "before"
PLACES = (AFTER, BEFORE)
_BETWEEN = "~"


@dataclass(frozen=True, slots=True)
class Key:
    """A column of a list's order."""

    field: Field
    descending: bool

    @property
    def name(self) -> str:
        """As in a query."""
        return self.field.attname

    def beyond(self, value: Any, *, backwards: bool, or_at: bool = False) -> Q:
        """Rows that come later in the order than a value; `backwards`: earlier."""
        side = "lt" if self.descending != backwards else "gt"
        return Q((f"{self.name}__{side}{'e' if or_at else ''}", value))

    def order(self, *, backwards: bool) -> str:
        """As in `order_by`."""
        return f"-{self.name}" if self.descending != backwards else self.name


def keys_of(model: type[Model], ordering: Sequence[Any]) -> list[Key] | None:
    """The columns of an order down to the first that no two rows share; None where places cannot be told: an
    order by something computed, or by what may be unknown."""
    keys: list[Key] = []
    for name in ordering:
        if not isinstance(name, str) or (field := _column(model, name.lstrip("-"))) is None:
            return None
        if field not in [key.field for key in keys]:
            keys.append(Key(field, name.startswith("-")))
        if field.unique:
            return keys
    return None


def _column(model: type[Model], name: str) -> Field | None:
    try:
        field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, Field) and not field.null else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins."""

    values: tuple[Any, ...] | None
    """Of the row beside it; None: at the end of the list."""
    backwards: bool
    """The page ends before that row."""

    def narrowed(self, rows: QuerySet, keys: Sequence[Key]) -> QuerySet:
        """The rows from here on, in reading direction."""
        ordered = rows.order_by(*(key.order(backwards=self.backwards) for key in keys))
        if self.values is None:
            return ordered
        return ordered.filter(_beyond(keys, self.values, self.backwards))


def _beyond(keys: Sequence[Key], values: Sequence[Any], backwards: bool) -> Q:
    """The first column bounds what an index gives; the others settle ties."""
    key, value = keys[0], values[0]
    if len(keys) == 1:
        return key.beyond(value, backwards=backwards)
    ties = _beyond(keys[1:], values[1:], backwards)
    bound = key.beyond(value, backwards=backwards, or_at=True)
    return bound & (key.beyond(value, backwards=backwards) | ties)


def asked_place(parameters: Mapping[str, str], keys: Sequence[Key]) -> Place | None:
    """The place that an address names; None for the first page. Raises ValueError for one that is none."""
    for name in PLACES:
        if (text := parameters.get(name)) is not None:
            return Place(_values(text, keys) if text else None, name == BEFORE)
    return None


def _values(text: str, keys: Sequence[Key]) -> tuple[Any, ...]:
    parts = text.split(_BETWEEN)
    if len(parts) != len(keys) or "\x00" in text:
        raise ValueError(text)
    try:
        return tuple(key.field.to_python(part) for key, part in zip(keys, parts, strict=True))
    except ValidationError as error:
        raise ValueError(text) from error


def place_of(row: Model, keys: Sequence[Key]) -> str:
    """A row's place, as an address names it."""
    return _BETWEEN.join(_spelled(getattr(row, key.name)) for key in keys)


def _spelled(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, and what lies on either side."""

    rows: list[Any]
    before: str | None
    """Place to go back from; None: this is the beginning."""
    after: str | None
    """Place to go on from; None: this is the end."""


def read_page(rows: QuerySet, keys: Sequence[Key], place: Place | None, size: int) -> Page:
    """The page at a place, with one row more than shown, to know whether it goes on."""
    backwards = place is not None and place.backwards
    found = list((place or Place(None, False)).narrowed(rows, keys)[: size + 1])
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    if not found:
        return Page([], None, None)
    has_before = more if backwards else place is not None
    has_after = (place is not None and place.values is not None) if backwards else more
    return Page(
        found,
        place_of(found[0], keys) if has_before else None,
        place_of(found[-1], keys) if has_after else None,
    )
