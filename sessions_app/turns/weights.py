"""Are the weights that an engine reports the ones the trainer says it holds?

A trainer names a version before it resumes; the engine reports one with each reply. When the named version
moves on and the reported one stays, rollouts are sampled from old weights and nothing else would tell.
"""

import logging
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    dispatched: str
    reported: str


class WeightWatch:
    """Remembers, per engine, which version was reported first under the version that was named."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self.stuck: dict[str, str] = {}
        """Engines whose reported version did not follow, with that version."""

    def note(self, worker: str, dispatched: str | None, reported: str | None) -> None:
        """One reply. Warns once for each named version that the engine did not follow."""
        if dispatched is None or reported is None:
            return
        before = self._seen.get(worker)
        if before is not None and before.dispatched == dispatched:
            if before.reported != reported:  # it follows, if late
                self.stuck.pop(worker, None)
            return
        self._seen[worker] = _Seen(dispatched, reported)
        if before is None or reported != before.reported or reported == dispatched:
            self.stuck.pop(worker, None)
            return
        self.stuck[worker] = reported
        logger.warning(
            "engine %s still reports weights %r after the trainer named %r", worker, reported, dispatched
        )
