"""What rewards reached: the page says what assembling the samples does with them."""

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.admin.pages import training
from sessions_app.models import Reward, Session
from tests.admin.seeding import Seeds, stale_row
from tests.admin.test_pages import RAW, page, session_url, twin


def rewards_url(session: str) -> str:
    return f"/admin/sessions_app/session/{session}/rewards/"


def reported(session: str, value: float, node: int | None = None, weight: float = 1.0) -> Reward:
    return Reward.objects.create(
        session_id=session,
        node_seq=node,
        name="<script>document</script>",
        value=value,
        weight=weight,
        key=f"{node}:{value}",
        created_at=timezone.now(),
    )


@pytest.fixture
def leaf(staff: Client, seeds: Seeds) -> int:
    """A leaf with a row."""
    return twin(staff, rewards_url(seeds.busy))["rows"][0]["leaf"]


def test_the_numbers_told_are_those_of_the_assembled_rows(staff: Client, seeds: Seeds, leaf: int) -> None:
    reported(seeds.busy, 1.0)
    reported(seeds.busy, 0.5, leaf, weight=3.0)
    reported(seeds.busy, 7.0, 0)
    value = twin(staff, rewards_url(seeds.busy))
    assert {row["leaf"]: row["reward"] for row in value["rows"]} == {
        row["leaf"]: 1.5 if row["leaf"] == leaf else 1.0 for row in value["rows"]
    }
    assert [row["worth"] for row in value["rows"]] == [row["reward"] for row in value["rows"]]
    assert not any(row["replaced"] for row in value["rows"])
    whole, own, turn = (one["reach"] for one in value["rewards"])
    assert (whole["outranked"], own["enters"], turn["enters"]) == ([leaf], [leaf], [])
    assert leaf in turn["stands_in"]


def test_the_page_says_the_rule_and_hides_nothing(staff: Client, seeds: Seeds, leaf: int) -> None:
    reward = reported(seeds.busy, 1.0, leaf)
    text = page(staff, rewards_url(seeds.busy))
    assert "A leaf without any takes those of the whole session." in text
    assert f'id="r{reward.pk}"' in text
    assert not any(raw in text for raw in RAW)
    assert rewards_url(seeds.busy) in page(staff, session_url(seeds.busy))


def test_a_row_handed_out_before_tells_its_number_then(staff: Client, seeds: Seeds, leaf: int) -> None:
    row = twin(staff, rewards_url(seeds.busy))["rows"][0]
    stale_row(Session.objects.get(pk=seeds.busy), leaf, row["sample_id"])
    reported(seeds.busy, 1.0, leaf)
    handed = twin(staff, rewards_url(seeds.busy))["rows"][0]["handed"]
    assert (handed["reward"], handed["stale_reason"]) == (None, "reward")
    assert "not the one now" in page(staff, rewards_url(seeds.busy))


def test_no_reward_is_told(staff: Client, seeds: Seeds) -> None:
    assert "No reward was reported" in page(staff, rewards_url(seeds.plain))
    assert "No reward was reported" in page(staff, rewards_url(seeds.empty))


def test_what_was_not_assembled_is_unknown_with_its_reason(
    staff: Client, seeds: Seeds, leaf: int, monkeypatch
) -> None:
    reported(seeds.busy, 1.0)
    monkeypatch.setattr(training, "MOST_TOKENS", 10)
    value = twin(staff, rewards_url(seeds.busy))
    assert [one["reach"] for one in value["rewards"]] == [None]
    assert "is unknown because" in page(staff, rewards_url(seeds.busy))
