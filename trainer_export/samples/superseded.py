"""When one reply takes the place of an earlier one: the same request, asked again after the first had ended.

Parallel children stay (they were asked for before the earlier one ended), and so does a reply whose
repetition did not complete.
"""

from trainer_export.samples.values import Leaf, Status, Turn


def superseded_by(leaf: Leaf) -> int | None:
    """Seq of the first later sibling that supersedes the leaf; None if there is none."""
    return next((sibling.seq for sibling in leaf.later_siblings if _supersedes(sibling, leaf.last)), None)


def _supersedes(later: Turn, earlier: Turn) -> bool:
    return (
        later.request_digest is not None
        and later.request_digest == earlier.request_digest
        and later.status is Status.COMPLETED
        and _asked_after(later, earlier)
    )


def _asked_after(later: Turn, earlier: Turn) -> bool:
    """Commit order says it where prepare recorded what it saw: two machines' clocks may differ."""
    if later.after_seq is not None:
        return later.after_seq >= earlier.seq
    return later.requested_at is not None and later.requested_at >= earlier.committed_at
