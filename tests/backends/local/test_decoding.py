"""One sampling step: what may be drawn, and that the logprob is that of the distribution drawn from."""

import math

import pytest
import torch

from sessions_app.backends.local.decoding import Draw, Sampling, draw

LOGITS = torch.tensor([2.0, 1.0, 0.5, -1.0, -3.0])


def draws(count: int = 200, seen: list[int] | None = None, **fields: float) -> list[Draw]:
    source = torch.Generator().manual_seed(1)
    sampling = Sampling(**fields)  # type: ignore[arg-type]
    ids = torch.tensor(seen or [], dtype=torch.long)
    return [draw(LOGITS, sampling, ids, source) for _ in range(count)]


def test_plain_sampling_reports_the_models_own_logprobs():
    reference = torch.log_softmax(LOGITS, dim=-1)
    for each in draws():
        assert each.logprob == each.raw_logprob == float(reference[each.token])


def test_temperature_changes_the_reported_distribution():
    reference = torch.log_softmax(LOGITS / 0.5, dim=-1)
    for each in draws(temperature=0.5):
        assert each.logprob == pytest.approx(float(reference[each.token]))
        assert each.raw_logprob != each.logprob


def test_greedy_takes_the_best_and_reports_the_models_logprob():
    assert {each.token for each in draws(20, temperature=0)} == {0}
    assert draws(1, temperature=0)[0].logprob == pytest.approx(float(torch.log_softmax(LOGITS, -1)[0]))


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 1e-6}, {0}),
        ({"min_p": 0.3}, {0, 1}),
        ({"top_k": 4, "top_p": 0.7}, {0, 1}),
    ],
)
def test_filters_keep_exactly_what_they_allow_and_renormalise(fields, allowed):
    found = draws(**fields)
    assert {each.token for each in found} == allowed
    total = sum(math.exp(logprob) for logprob in {each.token: each.logprob for each in found}.values())
    assert total == pytest.approx(1.0, abs=1e-5)


def test_a_repetition_penalty_lowers_what_was_seen():
    assert draws(1, temperature=0, seen=[0], repetition_penalty=10.0)[0].token == 1


def test_equal_seeds_draw_equal_ids():
    assert [each.token for each in draws(50)] == [each.token for each in draws(50)]
