"""The three lanes: what differs is shown with its class, what is equal is folded, what cannot be is said."""

from typing import Any

import pytest
from django.test import Client

from sessions_app.admin.readers import READERS
from sessions_app.insight.drift import compare_lanes, load_conversation
from sessions_app.models import ModelProfile, Node, Session, TokenCheckpoint
from tests.admin.seeding import Seeds
from tests.admin.test_pages import node_url, page, session_url, twin


def diff_url(session: str, seq: int) -> str:
    return node_url(session, seq) + "diff/"


def test_what_was_sampled_otherwise_than_it_would_be_rendered_is_assistant_text(
    staff: Client, seeds: Seeds
) -> None:
    value = twin(staff, diff_url(seeds.busy, 10))
    assert {lane["name"] for lane in value["lanes"]} == {"served", "stored", "client"}
    kinds = {kind["name"] for hunk in value["hunks"] for lane in hunk["lanes"] for kind in lane["kinds"]}
    assert kinds <= {"assistant_text", "respelled"}
    assert value["total"] > 0
    assert "assistant_text" in page(staff, diff_url(seeds.busy, 10))


def test_the_client_lane_holds_what_the_client_spelled(staff: Client, seeds: Seeds) -> None:
    """Blanks that a client changed in a reply that still matches would stand in the client lane only."""
    session = Session.objects.select_related("profile").get(pk=seeds.busy)
    conversation = load_conversation(session.id, 10)
    assert conversation is not None
    assert conversation.client == conversation.stored
    reading = READERS.reading(session.profile, [conversation.tokenizer_fingerprint])
    assert reading.renderer is not None
    changed = [*conversation.client]
    changed[1] = {**changed[1], "content": "Add 2 and 7, please."}
    view = compare_lanes(type(conversation)(**{**_fields(conversation), "client": changed}), reading.renderer)
    assert "non_assistant_text" in {kind for difference in view.differences for kind in difference.kinds}


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def test_hunks_and_equal_stretches_add_up_to_the_served_ids(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, diff_url(seeds.busy, 10))
    served = sum(cell["differs"] for hunk in value["hunks"] for cell in hunk["lanes"][0]["cells"])
    node = Node.objects.get(session_id=seeds.busy, seq=10)
    inside = sum(hunk["equal_before"] for hunk in value["hunks"]) + value["equal_after"] + served
    assert inside <= node.total_tokens
    assert inside > node.total_tokens - 100


def test_a_tokenizer_that_cannot_be_loaded_leaves_the_ids(staff: Client, seeds: Seeds) -> None:
    before = ModelProfile.objects.get(name="default").model
    ModelProfile.objects.filter(name="default").update(model="/nowhere/at/all")
    try:
        first = twin(staff, node_url(seeds.plain, 0))["tokens"]
        assert "/nowhere/at/all" in first["unavailable"]
        assert [cell["text"] for cell in first["cells"]] == [None] * len(first["cells"])
        assert first["cells"][0]["id"] > 0
        for url in (node_url(seeds.plain, 0), diff_url(seeds.plain, 0), session_url(seeds.plain)):
            text = page(staff, url)
        assert "unavailable because" in page(staff, node_url(seeds.plain, 0))
        assert "Nothing can be rendered because" in page(staff, diff_url(seeds.plain, 0))
        assert text
    finally:
        ModelProfile.objects.filter(name="default").update(model=before)


def test_ids_are_never_read_with_another_tokenizer(staff: Client, seeds: Seeds) -> None:
    profile = ModelProfile.objects.get(name="default")
    reading = READERS.reading(profile, ["0" * 64])
    assert reading.renderer is None
    assert reading.unavailable is not None
    assert "these ids are of tokenizer 000000000000" in reading.unavailable


@pytest.mark.parametrize("at", [0, 3, 100, 10**6])
def test_stretches_join_to_the_whole_path(staff: Client, seeds: Seeds, at: int) -> None:
    node = Node.objects.get(session_id=seeds.busy, seq=10)
    stretch = twin(staff, node_url(seeds.busy, 10) + f"tokens/?at={at}")
    assert stretch["stop"] <= node.total_tokens
    assert [cell["index"] for cell in stretch["cells"]] == list(range(stretch["start"], stretch["stop"]))


def test_cells_spell_the_decoded_text(staff: Client, seeds: Seeds) -> None:
    session = Session.objects.select_related("profile").get(pk=seeds.odd)
    stretch = twin(staff, node_url(seeds.odd, 0) + "tokens/?at=0")
    reading = READERS.reading(session.profile, [])
    assert reading.reader is not None
    ids = [cell["id"] for cell in stretch["cells"]]
    assert "".join(cell["text"] for cell in stretch["cells"]) == reading.reader.decode(ids)
    assert any(cell["continues"] for cell in stretch["cells"])


def test_logprobs_stand_on_sampled_ids_only(staff: Client, seeds: Seeds) -> None:
    stretch = twin(staff, node_url(seeds.plain, 2) + "tokens/?at=0")
    for cell in stretch["cells"]:
        assert (cell["logprob"] is not None) == (cell["kind"] == "completion")
    checkpoint = TokenCheckpoint.objects.get(session_id=seeds.plain, node_seq=2)
    assert (
        sum(cell["kind"] == "glue" for cell in stretch["cells"] if cell["node"] == 2)
        == checkpoint.glue_tokens
    )
