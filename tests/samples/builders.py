"""Short ways to say a forest in tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sessions_app.history.context import ROOT, context_digest
from sessions_app.packing import Ids
from trainer_export.samples.assemble import assemble
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.payload import SamplesPayload
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import Leaf, Payload, SessionForest, Turn


def as_text(ids: Ids) -> str:
    """One bracketed number per id."""
    return "".join(f"[{token}]" for token in ids.tolist())


RULES = AssemblyRules(as_text)


def ids(values: Sequence[int]) -> Ids:
    return np.array(values, dtype=np.int32)


def turn(
    seq: int, parent: int | None, delta: Sequence[int], completion: Sequence[int], **fields: Any
) -> Turn:
    """A turn that took one second each to be asked and answered, in commit order; logprobs tell turn and
    place."""
    logprobs = [-(seq + 1) - place / 1000 for place in range(len(completion))]
    made = Turn(
        seq=seq,
        parent=parent,
        prompt_delta=ids(delta),
        completion=ids(completion),
        logprobs=np.array(logprobs, dtype=np.float64),
        requested_at=float(2 * seq),
        committed_at=float(2 * seq + 1),
        response_id=f"resp-{seq}",
        root_class="main" if parent is None else None,
    )
    for name in ("routed_experts", "indexer_topk"):
        if isinstance(fields.get(name), bytes):
            fields[name] = Payload.of(fields[name])
    return replace(made, **fields)


def digested(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns with the context digests that a commit would have stored."""
    digests: dict[int | None, bytes] = {None: ROOT}
    done = []
    for item in turns:
        digest = context_digest(digests[item.parent], item.trim, item.prompt_delta, item.completion)
        digests[item.seq] = digest
        done.append(replace(item, context_digest=digest))
    return tuple(done)


def forest_of(*turns: Turn, policy: str = "tree", **fields: Any) -> SessionForest:
    """A session; under `rollback` the last turn is the active one."""
    active = turns[-1].seq if turns else None
    return SessionForest("f" * 32, policy, digested(turns), **{"active": active, **fields})


def leaf_of(*turns: Turn, **fields: Any) -> Leaf:
    """The leaf at the end of one path."""
    return replace(leaves_of(forest_of(*turns))[-1], **fields)


def sample_of(*turns: Turn, **rules: Any) -> Sample:
    """The raw sample of one path, which the rules must leave something of."""
    sample = assemble(leaf_of(*turns), replace(RULES, **rules))
    assert sample is not None
    return sample


def payload_of_samples(*samples: Sample, with_reward: bool = True) -> SamplesPayload:
    return SamplesPayload(list(samples), {}, None, with_reward)
