"""Batches of generations: alone and together alike, every kind of end, leaving between two tokens."""

import time

import pytest
import torch

from sessions_app.backends.local.decoding import Sampling
from sessions_app.backends.local.scheduler import Scheduler
from sessions_app.backends.local.sequences import Sequence
from sessions_app.backends.local.weights import LoadedModel, load

PROMPTS = [[5, 6, 7, 8, 9, 10, 11], [20, 21], [30, 31, 32, 33]]


@pytest.fixture(scope="module")
def loaded(tiny_model):
    return load(str(tiny_model))


@pytest.fixture
def scheduler(loaded):
    made = Scheduler(loaded.model, loaded.pad, loaded.stops)
    yield made
    made.close()


def sequence(prompt: list[int], **fields: object) -> Sequence:
    return Sequence(prompt, Sampling(**{"max_new_tokens": 8, "ignore_eos": True, **fields}))  # type: ignore[arg-type]


def run(scheduler: Scheduler, *sequences: Sequence) -> list[Sequence]:
    for each in sequences:
        scheduler.submit(each)
    return [each.result.result(timeout=30) for each in sequences]


def model_logprobs(loaded: LoadedModel, done: Sequence) -> torch.Tensor:
    ids = torch.tensor([done.prompt + done.ids])
    with torch.inference_mode():
        logits = loaded.model(input_ids=ids).logits[0]
    rows = torch.log_softmax(logits.float(), dim=-1)[len(done.prompt) - 1 : -1]
    return rows.gather(1, torch.tensor(done.ids)[:, None])[:, 0]


def test_reported_logprobs_are_the_models_whatever_the_batch(loaded, scheduler):
    for done in run(scheduler, *(sequence(prompt, seed=3) for prompt in PROMPTS)):
        reported = torch.tensor([each.logprob for each in done.draws])
        assert torch.allclose(reported, model_logprobs(loaded, done), atol=1e-4)


def test_greedy_is_the_same_alone_and_in_a_batch(scheduler):
    alone = [run(scheduler, sequence(prompt, temperature=0.0))[0].ids for prompt in PROMPTS]
    batch = run(scheduler, *(sequence(prompt, temperature=0.0) for prompt in PROMPTS))
    together = [done.ids for done in batch]
    assert alone == together


def test_a_seed_repeats_and_no_seed_does_not(scheduler):
    seeded = [run(scheduler, sequence(PROMPTS[0], seed=4))[0].ids for _ in range(2)]
    free = [run(scheduler, sequence(PROMPTS[0]))[0].ids for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert free[0] != free[1]


def test_lengths_differ_within_a_batch(scheduler):
    wanted = [3, 9, 1]
    done = run(
        scheduler, *(sequence(prompt, max_new_tokens=n) for prompt, n in zip(PROMPTS, wanted, strict=True))
    )
    assert [len(each.ids) for each in done] == wanted
    assert {each.finish_reason for each in done} == {"length"}


def test_stop_ids_and_the_models_own_end_are_kept_as_last_id(scheduler, loaded):
    first = run(scheduler, sequence(PROMPTS[0], temperature=0.0))[0].ids[0]
    (done,) = run(scheduler, sequence(PROMPTS[0], temperature=0.0, stop_token_ids=frozenset({first})))
    assert (done.ids, done.finish_reason, done.matched) == ([first], "stop", first)


def test_a_stop_string_ends_after_the_id_that_completes_it(scheduler, loaded):
    ids = run(scheduler, sequence(PROMPTS[1], temperature=0.0))[0].ids
    text = loaded.tokenizer.decode(ids[2:4])
    (done,) = run(scheduler, sequence(PROMPTS[1], temperature=0.0, stop=(text,)))
    assert done.finish_reason == "stop"
    assert done.matched == text
    assert text in loaded.tokenizer.decode(done.ids)
    assert len(done.ids) <= 4


def test_an_abandoned_sequence_leaves_between_two_tokens_and_the_others_go_on(scheduler):
    left, stays = sequence(PROMPTS[0], max_new_tokens=900), sequence(PROMPTS[1], max_new_tokens=30)
    scheduler.submit(left)
    scheduler.submit(stays)
    time.sleep(0.05)
    left.abandoned = True
    assert left.result.result(timeout=10).finish_reason == "abort"
    assert len(left.ids) < 900
    assert len(stays.result.result(timeout=10).ids) == 30


def test_a_late_request_does_not_wait_for_an_early_long_one(scheduler):
    long = sequence(PROMPTS[0], max_new_tokens=900)
    scheduler.submit(long)
    time.sleep(0.02)
    (short,) = run(scheduler, sequence(PROMPTS[1], max_new_tokens=2))
    assert len(short.ids) == 2
    assert not long.result.done()
    long.abandoned = True


def test_closing_settles_what_is_in_progress(loaded):
    scheduler = Scheduler(loaded.model, loaded.pad, loaded.stops)
    long = sequence(PROMPTS[0], max_new_tokens=900)
    scheduler.submit(long)
    time.sleep(0.02)
    scheduler.close()
    assert long.result.result(timeout=5).finish_reason == "abort"
