"""What of a session would be trained if its samples were assembled now, by the configured hooks.

Assembles, proves and counts; hands nothing out and stores nothing. Invariant: generated = trained + the sum
over all reasons, and a token is trained by one row at most.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from django.conf import settings

from sessions_app.admin.readers import READERS
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.insight.tokens import Fates
from sessions_app.models import Node, RequestHead, Reward, Session
from trainer_export.forests.build import forest_of
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.sample import Mask
from trainer_export.serving import assembly_rules

MOST_TOKENS = 2_000_000
"""Tokens of all leaves together that are assembled for a page."""
_KEPT = 32


@dataclass(frozen=True, slots=True)
class RowLine:
    """One row of training."""

    leaf: int
    path: list[int]
    """Seqs from the root to the leaf."""
    sample_id: str
    status: str
    tokens: int
    generated: int
    trained: int
    masked: dict[str, int]
    stopped_at: int | None
    stopped_reason: str | None
    reward: Any
    weight_versions: list[str]


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """A leaf without a row."""

    leaf: int
    reason: str
    superseded_by: int | None


@dataclass(frozen=True, slots=True)
class NodeFate:
    """What becomes of a node's sampled ids."""

    mask: Mask
    """1 where the id is trained, by the owner's row."""
    owner: int | None
    """Leaf whose row trains it."""
    reasons: tuple[str, ...]
    """Why ids of it are not trained; several where rows disagree."""

    @property
    def trained(self) -> int:
        """Ids that are trained."""
        return int(np.count_nonzero(self.mask))


@dataclass(frozen=True, slots=True)
class Training:
    """Of a whole session."""

    unavailable: str | None
    """Why nothing was assembled."""
    picker: str
    postprocessor: str
    rows: list[RowLine]
    dropped: list[DroppedLine]
    generated: int
    trained: int
    masked: dict[str, int]
    """Ids that no row trains, by reason."""
    nodes: Mapping[int, NodeFate]


def fates_of(training: Training, leaf: int) -> Fates:
    """What becomes of single ids, seen from the path to a leaf."""

    def fate(node: int, place: int) -> tuple[str, int | None] | None:
        found = training.nodes.get(node)
        if found is None:
            return _fate_of_dropped(training, node)
        if place < len(found.mask) and found.mask[place]:
            return ("trained" if found.owner == leaf else "trained_elsewhere"), found.owner
        return " or ".join(found.reasons) or "not_picked", None

    return fate


def _fate_of_dropped(training: Training, node: int) -> tuple[str, int | None] | None:
    """A node that stands in no row."""
    if training.unavailable is not None:
        return None
    gone = next((one for one in training.dropped if one.leaf == node), None)
    return (gone.reason if gone else "not_picked"), None


def training_of(session: Session, leaf_tokens: int) -> Training:
    """The training of a session. `leaf_tokens`: of all its leaves together, to know what it would cost."""
    if leaf_tokens > MOST_TOKENS:
        return _unknown(f"its leaves hold {leaf_tokens:,} tokens, pages assemble up to {MOST_TOKENS:,}")
    key = _key(session)
    with _LOCK:
        if key in _MADE:
            _MADE.move_to_end(key)
            return _MADE[key]
    made = _assembled(session)
    if made.unavailable is not None:
        return made
    with _LOCK:
        _MADE[key] = made
        if len(_MADE) > _KEPT:
            _MADE.popitem(last=False)
    return made


def forget(session: Session) -> None:
    """Assemble anew when asked next."""
    with _LOCK:
        for key in [key for key in _MADE if key[0] == session.id]:
            del _MADE[key]


def _key(session: Session) -> tuple[Any, ...]:
    """What an assembly depends on: the nodes, the classes of roots, rewards, the hooks."""
    classes = Node.objects.filter(session=session, parent_seq__isnull=True).order_by("seq")
    rewards = Reward.objects.filter(session=session).count()
    hooks = settings.TITO.sample_picker, settings.TITO.sample_postprocessor
    return session.id, session.version, tuple(classes.values_list("root_class", flat=True)), rewards, *hooks


_MADE: OrderedDict[tuple[Any, ...], Training] = OrderedDict()
_LOCK = Lock()


def _unknown(reason: str) -> Training:
    configuration = settings.TITO
    hooks = configuration.sample_picker, configuration.sample_postprocessor
    return Training(reason, *hooks, rows=[], dropped=[], generated=0, trained=0, masked={}, nodes={})


def _assembled(session: Session) -> Training:
    heads = RequestHead.objects.filter(session=session).values_list("tokenizer_fingerprint", flat=True)
    reading = READERS.reading(session.profile, set(heads))
    if reading.renderer is None:
        return _unknown(reading.unavailable or "")
    configuration = settings.TITO
    try:
        hooks = resolve_hooks(configuration.sample_picker, configuration.sample_postprocessor)
        stored = settled(load_sessions(ORM, [session.id], Wanted(messages=not session.healing)))
        forest = forest_of(stored[0], continuations=not session.healing)
        rules = replace(assembly_rules(reading.renderer, configuration), replay=False)
        made = session_rows(forest, hooks, rules, fork_threshold_tokens=configuration.fork_threshold_tokens)
    except Exception as error:
        return _unknown(f"{type(error).__name__}: {error}")
    return _training(made)


def _training(made: SessionRows) -> Training:
    report = made.report
    return Training(
        unavailable=None,
        picker=settings.TITO.sample_picker,
        postprocessor=settings.TITO.sample_postprocessor,
        rows=[_row_line(row) for row in made.rows],
        dropped=[DroppedLine(one.leaf, str(one.reason), one.superseded_by) for one in report.dropped],
        generated=report.count.generated,
        trained=report.count.trained,
        masked=dict(report.count.masked),
        nodes=_fates(made),
    )


def _row_line(row: SampleRow) -> RowLine:
    return RowLine(
        leaf=row.leaf,
        path=list(row.path),
        sample_id=row.sample_id,
        status=row.status,
        tokens=len(row.tokens),
        generated=row.generated,
        trained=row.trained,
        masked=dict(row.masked),
        stopped_at=row.stopped_at,
        stopped_reason=row.stopped_reason,
        reward=row.reward,
        weight_versions=list(dict.fromkeys(str(version) for version in row.weight_versions)),
    )


def _fates(made: SessionRows) -> dict[int, NodeFate]:
    """By node seq, from the row that trains it where one does."""
    fates: dict[int, NodeFate] = {}
    for row in made.rows:
        reasons = tuple(reason for reason in row.masked if reason != "trained_elsewhere")
        for turn in row.turns:
            mask = _turn_mask(row, turn.prompt_length, turn.completion_length, turn.kept)
            found = NodeFate(mask, row.leaf if turn.trained else None, reasons)
            if turn.seq not in fates or (turn.trained and fates[turn.seq].owner is None):
                fates[turn.seq] = found
    return fates


def _turn_mask(row: SampleRow, start: int, length: int, kept: int) -> Mask:
    mask: Mask = np.zeros(length, np.uint8)
    first = start - (len(row.tokens) - row.response_length)
    if kept and first >= 0:
        mask[:kept] = row.loss_mask[first : first + kept]
    return mask
