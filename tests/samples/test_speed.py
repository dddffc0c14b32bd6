"""A long session is assembled, proven and written within the promised time, and cost grows with its ids
only."""

import time

from tests.samples.builders import forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.codec import encode_samples
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import session_rows
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.values import SessionForest

HOOKS = resolve_hooks("drop_superseded", "default")
RULES = AssemblyRules(lambda ids: "x" * ids.size)


def session(turns: int, tokens: int) -> SessionForest:
    half = [7] * (tokens // turns // 2)
    return forest_of(*(turn(seq, seq - 1 if seq else None, half, half) for seq in range(turns)))


def seconds(forest: SessionForest) -> float:
    """Processor time: the best of five runs of payload, encoding and proven rows together."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        encode_samples(samples_payload(forest, SamplesArguments(), HOOKS, RULES))
        session_rows(forest, HOOKS, RULES)
        best = min(best, time.process_time() - start)
    return best


def test_fifty_turns_of_fifty_thousand_tokens_take_less_than_a_tenth_of_a_second():
    assert seconds(session(turns=50, tokens=50_000)) < 0.1


def test_eight_times_the_turns_cost_no_more_than_a_few_times_eight():
    few, many = seconds(session(400, 16_000)), seconds(session(3200, 128_000))
    assert many < 24 * few
