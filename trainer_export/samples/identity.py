"""What a sample is called: `session:leaf`, the same whenever it is made again."""

from collections.abc import Sequence

from trainer_export.samples.sample import Sample


def sample_ids(session_id: str, samples: Sequence[Sample]) -> list[str]:
    """One id per sample; further samples that hooks made of a leaf are numbered: `session:leaf.1` …"""
    seen: dict[int, int] = {}
    ids = []
    for sample in samples:
        leaf = sample.leaf.last.seq
        copy = seen.get(leaf, 0)
        seen[leaf] = copy + 1
        ids.append(f"{session_id}:{leaf}.{copy}" if copy else f"{session_id}:{leaf}")
    return ids
