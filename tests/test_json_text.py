"""Texts of messages as they stand in a body, whatever wrote it."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import json_text
from sessions_app.json_text import MessageTexts, loads

WRITERS = {
    "compact": orjson.dumps,
    "json": lambda value: json.dumps(value).encode(),
    "json, characters as they are": lambda value: json.dumps(value, ensure_ascii=False).encode(),
    "indented": lambda value: json.dumps(value, indent=2).encode(),
    "compact, escaped": lambda value: json.dumps(value, separators=(",", ":")).encode(),
}
"""Clients' ways to write JSON."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "tool"]), "content": texts}),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("writer", WRITERS)
@given(told=messages)
def test_texts_are_as_the_client_wrote_them(writer: str, told: list[dict[str, Any]]) -> None:
    body = WRITERS[writer]({"model": "m", "messages": told, "temperature": 0.5})
    found = MessageTexts(body, loads(body)["messages"])
    for index, message in enumerate(told):
        text = found.text(index)
        assert json.loads(text) == message
        assert text.encode() in body


@pytest.mark.parametrize("writer", ["compact", "json", "json, characters as they are"])
def test_usual_writers_need_no_second_reading_of_the_body(
    writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads(text: str, name: str) -> list[str]:
        raise AssertionError("the body was read again")

    monkeypatch.setattr(json_text, "_array_texts", reads)
    told = [{"role": "user", "content": f"zürich {n}"} for n in range(20)]
    body = WRITERS[writer]({"messages": told})
    found = MessageTexts(body, told)
    for index in (17, 18, 19, 0):
        assert json.loads(found.text(index)) == told[index]
