"""Which call gets which reward: the call it names or was recorded on, else the latest call before it.

Before means that the call had ended when the reward was given; by sequence id where clocks cannot be
compared (a proxy recorded some of the calls, or times are unknown). Calls that failed, have no tokens or
are not wanted take none. A later reward of the same name for the same call supersedes the earlier one;
other names stand beside it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer_export.traces.better.calls import Call
from trainer_export.traces.better.report import Remark, Report, Use
from trainer_export.traces.better.reward_facts import RewardFacts, meets


@dataclass(frozen=True, slots=True)
class Order:
    """How calls and rewards of one attempt are ordered."""

    by_sequence: bool

    @staticmethod
    def of(calls: Sequence[Call], rewards: Sequence[RewardFacts]) -> "Order":
        """By sequence only when everything has one and time cannot tell."""
        sequences = [call.sequence for call in calls] + [reward.span.sequence_id for reward in rewards]
        times = [call.end for call in calls] + [reward.at for reward in rewards]
        clocks_differ = any(call.is_proxied for call in calls) or None in times
        return Order(clocks_differ and min(sequences, default=0) > 0)

    def ready(self, call: Call) -> float | None:
        """From when on a reward can be meant for the call."""
        return float(call.sequence) if self.by_sequence else call.end

    def begun(self, call: Call) -> float:
        """Of several calls that are ready the one begun last is the nearest."""
        if self.by_sequence:
            return float(call.sequence)
        return float("-inf") if call.start is None else call.start

    def given(self, reward: RewardFacts) -> float | None:
        """When the reward was given."""
        return float(reward.span.sequence_id) if self.by_sequence else reward.at


def matched_rewards(
    wanted: Sequence[Call],
    calls: Sequence[Call],
    rewards: Sequence[RewardFacts],
    order: Order,
    report: Report,
) -> dict[str, dict[str, float]]:
    """Named values by the span id that stands for the call; rewards in the order given, `calls` includes
    unwanted.
    """
    finder = _Finder(wanted, calls, order)
    values: dict[str, dict[str, float]] = {}
    holders: dict[tuple[str, str], str] = {}
    matches: list[tuple[RewardFacts, str | None]] = []
    for reward in rewards:
        call_id = finder.find(reward, report)
        matches.append((reward, call_id))
        if call_id is not None:
            values.setdefault(call_id, {}).update(reward.values)
            holders.update({(call_id, name): reward.span.span_id for name, _ in reward.values})
    for reward, call_id in matches:
        _report(reward, call_id, holders, report)
    return values


def _report(
    reward: RewardFacts, call_id: str | None, holders: Mapping[tuple[str, str], str], report: Report
) -> None:
    own_id = reward.span.span_id
    if call_id is None:
        report.use_if_open(own_id, Use.REWARD_WITHOUT_CALL)
        return
    holding = [holders[call_id, name] for name, _ in reward.values]
    if own_id in holding:
        report.use_if_open(own_id, Use.REWARD, call_id)
    else:
        report.use_if_open(own_id, Use.SUPERSEDED_REWARD, holding[0])


class _Finder:
    """Calls by what rewards can name, and by when they were ready."""

    def __init__(self, wanted: Sequence[Call], calls: Sequence[Call], order: Order) -> None:
        self._order = order
        self._calls = calls
        self._wanted = {call.span_id for call in wanted}
        self._by_response = {call.response_id: call for call in calls if call.response_id is not None}
        self._by_span = {record.span.span_id: call for call in calls for record in call.records}
        timed = [(ready, call) for call in wanted if (ready := order.ready(call)) is not None]
        timed.sort(key=lambda pair: (pair[0], order.begun(pair[1]), pair[1].span_id))
        self._ready = [ready for ready, _ in timed]
        self._nearest = _running_latest([call for _, call in timed], order)

    def find(self, reward: RewardFacts, report: Report) -> str | None:
        """The span id that stands for the call; None also when the call it names is not wanted."""
        own_id = reward.span.span_id
        if reward.links:
            named = self._linked(reward.links)
            report.remark(own_id, Remark.LINK_UNRESOLVED if named is None else Remark.MATCHED_BY_LINK)
            return self._if_wanted(named)
        recorded_on = self._by_span.get(own_id) or self._by_span.get(reward.span.parent_id or "")
        if recorded_on is not None:
            report.remark(own_id, Remark.MATCHED_BY_LINK)
            return self._if_wanted(recorded_on)
        latest = self._latest_before(reward)
        if latest is not None:
            report.remark(own_id, Remark.MATCHED_BY_ORDER)
        return self._if_wanted(latest)

    def _if_wanted(self, call: Call | None) -> str | None:
        return call.span_id if call is not None and call.span_id in self._wanted else None

    def _linked(self, links: Mapping[str, str]) -> Call | None:
        """The last call of which one record meets every condition."""
        response_id = links.get("gen_ai.response.id")
        if response_id is not None and len(links) == 1:
            return self._by_response.get(response_id)
        fitting = [call for call in self._calls if any(meets(links, record.span) for record in call.records)]
        return fitting[-1] if fitting else None

    def _latest_before(self, reward: RewardFacts) -> Call | None:
        given = self._order.given(reward)
        if given is None:
            return None
        find = bisect_left if self._order.by_sequence else bisect_right
        position = find(self._ready, given)
        return self._nearest[position - 1] if position else None


def _running_latest(calls: Sequence[Call], order: Order) -> list[Call]:
    """At each position the call begun last so far."""
    latest: list[Call] = []
    for call in calls:
        before = latest[-1] if latest else call
        latest.append(call if order.begun(call) >= order.begun(before) else before)
    return latest
