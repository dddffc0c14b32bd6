"""What would be trained: counts that add up, the same on every screen, and a reason for the rest."""

from dataclasses import replace

from django.conf import settings
from django.test import Client

from sessions_app.admin.pages import training
from sessions_app.models import TokenCheckpoint
from tests.admin.seeding import Seeds
from tests.admin.test_pages import node_url, page, session_url, twin


def samples_url(session: str) -> str:
    return f"/admin/sessions_app/session/{session}/samples/"


def test_every_sampled_id_is_trained_once_or_has_a_reason(staff: Client, seeds: Seeds) -> None:
    for session in (seeds.plain, seeds.busy, seeds.rolled, seeds.reset, seeds.odd, seeds.failed, seeds.empty):
        value = twin(staff, samples_url(session))
        assert value["unavailable"] is None
        sampled = sum(
            len(bytes(one)) // 4
            for one in TokenCheckpoint.objects.filter(session_id=session).values_list("completion", flat=True)
        )
        assert value["generated"] == sampled == value["trained"] + sum(value["masked"].values())
        assert value["adds_up"]
        assert "Samples" in page(staff, samples_url(session))


def test_a_superseded_retry_is_dropped_with_its_reason(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, samples_url(seeds.rolled))
    assert value["masked"] == {"rolled_back": value["generated"] - value["trained"]}


def test_the_mask_of_the_token_view_counts_what_the_rows_count(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, samples_url(seeds.busy))
    trained = 0
    for seq in range(14):
        stretch = twin(staff, node_url(seeds.busy, seq) + "tokens/?at=0&signal=mask")
        trained += sum(cell["owner"] is not None and cell["node"] == seq for cell in stretch["cells"])
    assert trained == value["trained"]


def test_what_another_leaf_trains_names_that_leaf(staff: Client, seeds: Seeds) -> None:
    owners = {row["leaf"] for row in twin(staff, samples_url(seeds.busy))["rows"]}
    cells = twin(staff, node_url(seeds.busy, 4) + "tokens/?at=0&signal=mask")["cells"]
    elsewhere = [cell for cell in cells if cell["fate"] == "trained_elsewhere"]
    assert elsewhere
    assert {cell["owner"] for cell in elsewhere} <= owners - {4}


def test_the_session_page_says_the_same(staff: Client, seeds: Seeds) -> None:
    fact = twin(staff, session_url(seeds.busy))["samples"]
    value = twin(staff, samples_url(seeds.busy))
    assert (fact["rows"], fact["trained"], fact["masked"]) == (
        len(value["rows"]),
        value["trained"],
        value["masked"],
    )


def test_a_session_too_large_for_a_page_says_so(staff: Client, seeds: Seeds, monkeypatch) -> None:
    monkeypatch.setattr(training, "MOST_TOKENS", 10)
    assert "pages assemble up to 10" in page(staff, samples_url(seeds.busy))
    assert twin(staff, session_url(seeds.busy))["picture"]["marks"][0]["share"] is None


def test_a_hook_that_fails_is_told_and_breaks_no_page(staff: Client, seeds: Seeds, monkeypatch) -> None:
    monkeypatch.setattr(settings, "TITO", replace(settings.TITO, sample_picker="tests.nothing.here"))
    assert "tests.nothing" in page(staff, samples_url(seeds.busy))
    assert page(staff, node_url(seeds.busy, 1))
