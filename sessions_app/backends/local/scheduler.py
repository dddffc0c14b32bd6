"""The thread that owns the model: takes waiting requests, steps the groups in turn."""

import queue
import threading
from typing import Any

import torch

from sessions_app.backends.local.sequences import Group, Sequence, Stops

_LARGEST_GROUP = 8


class Scheduler:
    """Requests in from any thread, results out as futures."""

    def __init__(self, model: Any, pad: int, stops: Stops) -> None:
        self._model = model
        self._pad = pad
        self._stops = stops
        self._waiting: queue.SimpleQueue[Sequence | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    def submit(self, sequence: Sequence) -> None:
        """Queue a request; its `result` is set when it ends, whoever still waits for it."""
        sequence.result.set_running_or_notify_cancel()
        self._waiting.put(sequence)

    def close(self) -> None:
        """Stop after the current step; requests in progress end as `abort`."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        groups: list[Group] = []
        with torch.inference_mode():
            while (arrived := self._arrivals(block=not groups)) is not None:
                if arrived:
                    groups.append(Group(self._model, arrived, self._pad, self._stops))
                for group in groups:
                    self._step(group)
                groups = [group for group in groups if group.sequences]
        for group in groups:
            for sequence in group.sequences:
                sequence.abandoned = True
            group.step()

    def _step(self, group: Group) -> None:
        """A failure of the model ends its group, not the thread."""
        try:
            group.step()
        except Exception as error:
            for sequence in group.sequences:
                sequence.result.set_exception(error)
            group.sequences = []

    def _arrivals(self, *, block: bool) -> list[Sequence] | None:
        """Everything that waits; None = close."""
        arrived: list[Sequence] = []
        try:
            while len(arrived) < _LARGEST_GROUP:
                item = self._waiting.get(block=block and not arrived)
                if item is None:
                    return None
                arrived.append(item)
        except queue.Empty:
            pass
        return arrived
