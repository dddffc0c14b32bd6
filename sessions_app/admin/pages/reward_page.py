"""The rewards of a session and what each touched: rows, their numbers, what was handed out before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import page, read_session, shown
from sessions_app.admin.pages.training import RowLine, Training, training_of
from sessions_app.insight.forest import load_leaf_tokens
from sessions_app.insight.reward_reach import POLICY, Given, Reach, Row, Worth, reach_of, worth_of
from sessions_app.models import Reward, Session
from sessions_app.presentation.addresses import list_url, session_url
from trainer_export.models import Sample

_MOST = 1000
"""Rewards that are followed; sessions have a handful."""


@dataclass(frozen=True, slots=True)
class GivenLine:
    """One reward and its reach."""

    id: int
    name: str
    node: int | None
    value: float
    weight: float
    source: str
    created_at: datetime
    reach: Reach | None
    """None where the session was not assembled."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A row as it was handed out last."""

    id: int
    via: str
    job: str | None
    reward: float | None
    handed_at: datetime
    stale_at: datetime | None
    stale_reason: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """One reward in the number of a row."""

    id: int
    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class WorthLine:
    """One row: what it is worth, and why."""

    leaf: int
    sample_id: str
    reward: Any
    """As the row has it now."""
    worth: float | None
    """What the reports give; None: nothing was reported for it."""
    parts: list[Part]
    replaced: bool
    """A hook gave it another value than the reports."""
    handed: Handed | None


@dataclass(frozen=True, slots=True)
class RewardsPage:
    """Everything on the page."""

    session_id: str
    unavailable: str | None
    policy: tuple[str, ...]
    """The rule in words."""
    postprocessor: str
    rewards: list[GivenLine]
    total: int
    rows: list[WorthLine]


@page
def rewards_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """The page, or its twin."""
    session = read_session(request, session_id, "rewards")
    value = build(session, training_of(session, load_leaf_tokens(session.id)))
    links = {"session": session_url(session.id), "rewards": list_url("reward", session=session.id.hex)}
    return shown(request, "reward_reach.html", "Rewards", value, links=links)


def build(session: Session, training: Training) -> RewardsPage:
    """The page's value."""
    stored = Reward.objects.filter(session=session).order_by("id")
    rewards = list(stored[:_MOST])
    given = [Given(one.pk, one.node_seq, one.value, one.weight) for one in rewards]
    rows = [Row(row.leaf, tuple(row.path)) for row in training.rows]
    dropped = {one.leaf: one.reason for one in training.dropped}
    reaches = [None] * len(given) if training.unavailable else reach_of(given, rows, dropped)
    return RewardsPage(
        session_id=session.id.hex,
        unavailable=training.unavailable,
        policy=POLICY,
        postprocessor=training.postprocessor,
        rewards=[_given(one, reach) for one, reach in zip(rewards, reaches, strict=True)],
        total=len(rewards) if len(rewards) < _MOST else stored.count(),
        rows=_worth_lines(session, training.rows, worth_of(given, rows), {one.pk: one for one in rewards}),
    )


def _given(reward: Reward, reach: Reach | None) -> GivenLine:
    return GivenLine(
        reward.pk,
        reward.name,
        reward.node_seq,
        reward.value,
        reward.weight,
        reward.source,
        reward.created_at,
        reach,
    )


def _worth_lines(
    session: Session, rows: list[RowLine], worths: list[Worth], rewards: Mapping[int, Reward]
) -> list[WorthLine]:
    handed = {one.sample_id: one for one in Sample.objects.filter(session=session)}
    return [
        WorthLine(
            leaf=row.leaf,
            sample_id=row.sample_id,
            reward=row.reward,
            worth=worth.number,
            parts=[_part(rewards[number]) for number in worth.parts],
            replaced=row.reward != worth.number,
            handed=_handed(handed.get(row.sample_id)),
        )
        for row, worth in zip(rows, worths, strict=True)
    ]


def _part(reward: Reward) -> Part:
    return Part(reward.pk, reward.name, reward.value, reward.weight)


def _handed(sample: Sample | None) -> Handed | None:
    if sample is None:
        return None
    job = sample.job_id.hex if sample.job_id else None
    return Handed(
        sample.pk,
        sample.via,
        job,
        sample.reward,
        sample.handed_at,
        sample.stale_at,
        sample.stale_reason,
    )
