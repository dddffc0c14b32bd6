"""Python values as Postgres's binary parameters.

Invariant: one Python type is sent as one Postgres type (an int beyond 32 bits as int8), so that a statement
is prepared once and not again for each mixture of small and large numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any
from uuid import UUID

from psycopg.abc import Transformer
from psycopg.adapt import PyFormat

BINARY, TEXT = 1, 0
UNKNOWN = 0
"""Type oid of a null: the server takes what the statement asks for."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INT4, _INT8, _FLOAT8 = Struct("!i"), Struct("!q"), Struct("!d")
_LENGTH = _INT4
_NULL = _LENGTH.pack(-1)
_ARRAY = Struct("!iiiii")

_BOOL_OID, _BYTEA_OID, _INT8_OID, _INT4_OID, _TEXT_OID, _FLOAT8_OID = 16, 17, 20, 23, 25, 701
_TIMESTAMPTZ_OID, _UUID_OID = 1184, 2950
_ARRAY_OIDS = {_BOOL_OID: 1000, _BYTEA_OID: 1001, _INT4_OID: 1007, _TEXT_OID: 1009, _UUID_OID: 2951}

Encoded = tuple[int, bytes]
"""Type oid and value."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one statement as libpq takes them."""

    values: list[bytes | None]
    types: tuple[int, ...]
    formats: list[int]


def encoded(values: Sequence[Any], transformer: Transformer) -> Parameters:
    """`transformer`: psycopg's own, for types that are not frequent enough to be here."""
    data: list[bytes | None] = []
    types: list[int] = []
    formats: list[int] = []
    text: bytes | None
    for value in values:
        encode = _ENCODERS.get(type(value))
        if encode is not None:
            oid, text = encode(value)
            form = BINARY
        elif value is None:
            oid, text, form = UNKNOWN, None, BINARY
        else:
            oid, text, form = _seldom(value, transformer)
        data.append(text)
        types.append(oid)
        formats.append(form)
    return Parameters(data, tuple(types), formats)


def _seldom(value: Any, transformer: Transformer) -> tuple[int, bytes | None, int]:
    if type(value) is list and (array := _array(value)):
        return (*array, BINARY)
    if isinstance(value, str):
        return (*_text(value), BINARY)
    dumped = transformer.dump_sequence([value], [PyFormat.AUTO])[0]
    oid = transformer.types[0] if transformer.types else UNKNOWN
    form = int(transformer.formats[0]) if transformer.formats else TEXT
    return oid, _bytes(dumped), form


def _array(items: list[Any]) -> Encoded | None:
    """One dimension of one kind, nulls included; None where it is not that."""
    kinds = {type(item) for item in items} - {type(None)}
    encode = _ENCODERS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if encode is None:
        return None
    pieces, oids = [], set()
    for item in items:
        if item is None:
            pieces.append(_NULL)
            continue
        oid, data = encode(item)
        oids.add(oid)
        pieces += (_LENGTH.pack(len(data)), data)
    oid = oids.pop()
    if oids or oid not in _ARRAY_OIDS:
        return None
    return _ARRAY_OIDS[oid], _ARRAY.pack(1, int(None in items), oid, len(items), 1) + b"".join(pieces)


def _int(value: int) -> Encoded:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return _INT4_OID, _INT4.pack(value)
    return _INT8_OID, _INT8.pack(value)


def _text(value: str) -> Encoded:
    return _TEXT_OID, value.encode()


def _moment(value: datetime) -> Encoded:
    return _TIMESTAMPTZ_OID, _INT8.pack((value - _EPOCH) // _MICROSECOND)


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


_ENCODERS: dict[type, Callable[[Any], Encoded]] = {
    bool: lambda value: (_BOOL_OID, b"\x01" if value else b"\x00"),
    bytes: lambda value: (_BYTEA_OID, value),
    int: _int,
    str: _text,
    float: lambda value: (_FLOAT8_OID, _FLOAT8.pack(value)),
    datetime: _moment,
    UUID: lambda value: (_UUID_OID, value.bytes),
}
