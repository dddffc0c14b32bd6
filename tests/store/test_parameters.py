"""Parameters as Postgres reads them: every value comes back, one type of ours is one type there."""

import asyncio
import uuid
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.api.wiring import conninfo
from sessions_app.store.parameters import encoded
from sessions_app.store.pool import Database

pytestmark = pytest.mark.django_db


class Word(StrEnum):
    ONE = "one"


@asynccontextmanager
async def database(size: int = 1) -> Any:
    db = Database(conninfo(), max_size=size, prepared=True)
    await db.open()
    try:
        yield db
    finally:
        await db.close()


def back(value: Any, kind: str) -> Any:
    async def ask() -> Any:
        async with database() as db:
            row = await db.fetch_one(f"SELECT %(value)s::{kind}", {"value": value})
            return row[0]

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "int"),
        (True, "bool"),
        (False, "bool"),
        (0, "int"),
        (-1, "int"),
        (2**31 - 1, "int"),
        (2**31, "bigint"),
        (-(2**63), "bigint"),
        (7, "bigint"),
        (7, "double precision"),
        (1.5, "double precision"),
        ("", "text"),
        ("zürich 😀", "text"),
        ("word", "varchar"),
        ('{"a": 1}', "text"),
        (b"", "bytea"),
        (bytes(range(256)), "bytea"),
        (uuid.uuid4(), "uuid"),
        (datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC), "timestamptz"),
        (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=5))), "timestamptz"),
        ([1, 2, 3], "int[]"),
        ([2**40, 2**41], "bigint[]"),
        ([None, 1], "int[]"),
        ([None, None], "text[]"),
        ([], "text[]"),
        (["a", None, ""], "text[]"),
        ([b"\x00", b""], "bytea[]"),
        ([True, False], "bool[]"),
        ([1, 2**40], "bigint[]"),
        ([uuid.UUID(int=1)], "uuid[]"),
        (Decimal("1.50"), "numeric"),
        (date(2026, 11, 30), "date"),
    ],
)
def test_what_is_sent_comes_back(value: Any, kind: str) -> None:
    assert back(value, kind) == value


def test_an_enum_is_sent_as_its_text() -> None:
    assert back(Word.ONE, "text") == "one"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
    )
)
def test_any_list_of_texts_comes_back(texts: list[str | None]) -> None:
    assert back(texts, "text[]") == texts


def test_numbers_of_all_sizes_are_one_type_up_to_32_bits() -> None:
    types = {encoded([number], None).types for number in (0, 1, 40_000, 2**31 - 1, -(2**31))}  # type: ignore[arg-type]
    assert len(types) == 1
