"""Raw samples of leaves that were assembled before. A path never changes, so an entry is never wrong.

Shared between threads; bounded by the tokens it holds, replay rows counted by the memory they take. What is
handed out is a copy that hooks may change.
"""

from collections import OrderedDict
from threading import Lock

from trainer_export.samples.assemble import assemble
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import Leaf

Key = tuple[str, int, AssemblyRules]
_TOKEN_BYTES = 32
"""About what a token takes: id, mask, logprob, text."""


class SampleCache:
    """Least recently used samples go first."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._entries: OrderedDict[Key, Sample | None] = OrderedDict()
        self._tokens = 0
        self._lock = Lock()

    def sample(self, session_id: str, leaf: Leaf, rules: AssemblyRules) -> Sample | None:
        """The raw sample of a leaf, assembled at most once while it is held."""
        key = (session_id, leaf.last.seq, rules)
        with self._lock:
            hit = key in self._entries
            held = self._entries.get(key)
            if hit:
                self._entries.move_to_end(key)
        if not hit:
            held = assemble(leaf, rules)
            self._keep(key, held)
        return None if held is None else held.fresh(leaf)

    def _keep(self, key: Key, sample: Sample | None) -> None:
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = sample
            self._tokens += _size(sample)
            while self._tokens > self._max_tokens:
                self._tokens -= _size(self._entries.popitem(last=False)[1])


def _size(sample: Sample | None) -> int:
    if sample is None:
        return 1
    replay = (sample.rollout_routed_experts, sample.rollout_indexer_topk)
    return 1 + len(sample.tokens) + sum(rows.nbytes for rows in replay if rows is not None) // _TOKEN_BYTES
