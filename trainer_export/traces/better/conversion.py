"""Spans -> triplets and a report in mode `better`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer_export.traces.better.calls import Call, joined_calls
from trainer_export.traces.better.facts import CallFacts, facts_of, request_metadata, response_metadata
from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.labels import ANY_AGENT, Label, adopt, label_of, labels
from trainer_export.traces.better.matching import Order, matched_rewards
from trainer_export.traces.better.reading import attempts, read_spans
from trainer_export.traces.better.report import Entry, Remark, Report, Use
from trainer_export.traces.better.reward_facts import RewardFacts, is_reward_operation, rewards_of
from trainer_export.traces.dialects.images import image_urls
from trainer_export.traces.dialects.recognition import is_call
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN
from trainer_export.traces.span import Span
from trainer_export.traces.triplet import Triplet


@dataclass(frozen=True, slots=True)
class ServedTokens:
    """What our own record of a call says; it is preferred to what spans say."""

    prompt_ids: list[int]
    response_ids: list[int]
    logprobs: list[float] | None
    agent: str | None = None
    """The agent it was labelled with, which counts where the trace names none."""
    late: str | None = None
    """Why the reply is in no tree; None for one that is."""


Served = Callable[[str], ServedTokens | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """What to select, and what is known from elsewhere."""

    llm_call_match: str = DEFAULT_CALL_PATTERN
    """Calls that no dialect recognises, by name."""
    agent_match: str | None = None
    exclude_llm_call_in_reward: bool = True
    repair_hierarchy: bool = True
    final_reward: float | None = None
    """Of the whole rollout; it stands beside the rewards of the calls."""
    served: Served | None = None
    """Our record of a call by response id."""


@dataclass(slots=True)
class Outcome:
    """Triplets in order of the calls, and one entry for every span."""

    triplets: list[Triplet] = field(default_factory=list)
    report: list[Entry] = field(default_factory=list)


def convert(source: Sequence[Any], rules: Rules) -> Outcome:
    """Attempts are converted one by one, in order of rollout and attempt id."""
    reading = read_spans(source)
    outcome = Outcome(report=list(reading.left_out))
    for spans in attempts(reading.spans):
        report = Report((span.span_id, span.name) for span in spans)
        outcome.triplets += _Attempt(spans, rules, report).triplets()
        outcome.report += report.entries()
    return outcome


class _Attempt:
    """The conversion of one attempt."""

    def __init__(self, spans: Sequence[Span], rules: Rules, report: Report) -> None:
        self._rules = rules
        self._report = report
        self._forest = Forest(spans, report)
        for span in spans:
            self._remark_times(span)

    def triplets(self) -> list[Triplet]:
        """In order of sequence or start."""
        spans = self._forest.spans
        found = [facts_of(span) for span in spans if is_call(span, self._rules.llm_call_match)]
        rewards, reward_spans = self._rewards(spans)
        calls = joined_calls(self._forest, found, self._report)
        if self._rules.repair_hierarchy:
            adopt(self._forest, {facts.span.span_id for facts in found}, self._report)
        wanted = self._wanted(calls, labels(self._forest, reward_spans))
        order = Order.of([call for call, _ in wanted], rewards)
        wanted.sort(key=lambda pair: _position(pair[0], order))
        rewards.sort(key=lambda reward: _moment(reward, order))
        values = matched_rewards([call for call, _ in wanted], calls, rewards, order, self._report)
        return self._with_final_reward(
            [self._triplet(call, label, values.get(call.span_id, {})) for call, label in wanted]
        )

    def _remark_times(self, span: Span) -> None:
        if span.start_time is None or span.end_time is None:
            self._report.remark(span.span_id, Remark.TIMES_UNKNOWN)
        elif span.end_time < span.start_time:
            self._report.remark(span.span_id, Remark.ENDS_BEFORE_START)

    def _rewards(self, spans: Iterable[Span]) -> tuple[list[RewardFacts], set[str]]:
        """Readable rewards, and all spans that are rewards."""
        found: list[RewardFacts] = []
        reward_spans: set[str] = set()
        for span in spans:
            try:
                given = rewards_of(span)
            except ValidationError as error:
                self._report.use_if_open(span.span_id, Use.MALFORMED_REWARD, str(error))
                continue
            found += given
            if is_reward_operation(span) or any(not reward.links.get("span_id") for reward in given):
                reward_spans.add(span.span_id)
        return found, reward_spans

    def _wanted(self, calls: Sequence[Call], where: dict[str, Label]) -> list[tuple[Call, Label]]:
        """Calls to train on, each with the label of the record that knows its agent."""
        wanted = []
        for call in calls:
            label = self._labelled(call, label_of(call, where))
            refusal = self._refusal(call, label)
            if refusal is not None:
                self._report.use(call.span_id, refusal)
                continue
            if label.agent_span is not None:
                self._report.use_if_open(label.agent_span, Use.AGENT)
            wanted.append((call, label))
        return wanted

    def _labelled(self, call: Call, label: Label) -> Label:
        """The trace's own label, else that of our record; both, and different, is remarked."""
        served = self._served(call)
        if served is None or served.agent in (None, label.agent):
            return label
        if label.agent is None:
            return replace(label, agent=served.agent)
        self._report.remark(call.span_id, Remark.AGENTS_DISAGREE)
        return label

    def _refusal(self, call: Call, label: Label) -> Use | None:
        if label.in_reward and self._rules.exclude_llm_call_in_reward:
            return Use.INSIDE_A_REWARD
        if not label.is_wanted(self._rules.agent_match):
            return Use.AGENT_NOT_WANTED
        if call.failed:
            return Use.FAILED_CALL
        tokens = self._tokens(call)
        return None if tokens.prompt_ids and tokens.response_ids else Use.NO_TOKEN_IDS

    def _tokens(self, call: Call) -> ServedTokens:
        """Our own record first; a span that says otherwise is remarked."""
        first = next((record for record in call.records if record.has_tokens), call.records[0])
        recorded = ServedTokens(first.prompt_ids, first.response_ids, _logprobs(call, first))
        served = self._served(call)
        if served is None:
            return recorded
        for record in call.records:
            if record.has_tokens and (record.prompt_ids, record.response_ids) != (
                served.prompt_ids,
                served.response_ids,
            ):
                self._report.remark(record.span.span_id, Remark.TOKENS_DISAGREE)
        return served

    def _served(self, call: Call) -> ServedTokens | None:
        if self._rules.served is None or call.response_id is None:
            return None
        return self._rules.served(call.response_id)

    def _triplet(self, call: Call, label: Label, rewards: dict[str, float]) -> Triplet:
        tokens = self._tokens(call)
        if tokens.late is not None:
            self._report.remark(call.span_id, Remark.LATE_REPLY)
        if any(_misaligned(record) for record in call.records):
            self._report.remark(call.span_id, Remark.LOGPROBS_MISALIGNED)
        prompt = next((record.prompt for record in call.records if record.prompt is not None), None)
        response = next((record.response for record in call.records if record.response is not None), None)
        return Triplet(
            prompt={"token_ids": tokens.prompt_ids, "raw_content": prompt, "image_urls": image_urls(prompt)},
            response={"token_ids": tokens.response_ids, "raw_content": response, "logprobs": tokens.logprobs},
            reward=next(iter(rewards.values()), None),
            metadata={
                "request": _first(request_metadata(record.span.attributes) for record in call.records),
                "response": _first(response_metadata(record.span.attributes) for record in call.records),
                "response_id": call.response_id,
                "agent_name": label.agent or ANY_AGENT,
                "rewards": rewards,
                "span_ids": [record.span.span_id for record in call.records],
                **({} if tokens.late is None else {"late_reply": tokens.late}),
            },
        )

    def _with_final_reward(self, triplets: list[Triplet]) -> list[Triplet]:
        """Every triplet knows it; the last one is rewarded with it when it has no reward of its own."""
        final = self._rules.final_reward
        if final is None:
            return triplets
        for triplet in triplets:
            triplet.metadata["final_reward"] = final
        if triplets and triplets[-1].reward is None:
            triplets[-1] = triplets[-1].with_reward(final)
        return triplets


def _logprobs(call: Call, first: CallFacts) -> list[float] | None:
    """The first list that is as long as the response."""
    lists = [record.logprobs for record in call.records if record.logprobs is not None]
    return next((values for values in lists if len(values) == len(first.response_ids)), None)


def _misaligned(record: CallFacts) -> bool:
    return (
        record.logprobs is not None
        and bool(record.response_ids)
        and len(record.logprobs) != len(record.response_ids)
    )


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _position(call: Call, order: Order) -> tuple[float, float, str]:
    start = float("inf") if call.start is None else call.start
    return (float(call.sequence) if order.by_sequence else start, start, call.span_id)


def _moment(reward: RewardFacts, order: Order) -> tuple[float, str]:
    given = order.given(reward)
    return (float("inf") if given is None else given, reward.span.span_id)
