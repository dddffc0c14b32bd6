"""From stored rows to the forest that samples are made of. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from sessions_app.json_text import loads
from sessions_app.store.read import Healer
from sessions_app.turns.describing import healer_json
from trainer_export.forests.continuations import continued_ends
from trainer_export.forests.rows import NodeRow, RewardRow, SessionRow, SideRow, StoredSession
from trainer_export.samples.values import (
    CutContinuation,
    JsonObject,
    Payload,
    Reward,
    SessionForest,
    Speculative,
    Turn,
    history_metadata,
)

_CUT = "length"
_GOES_ON = ("root", "append")
_SPECULATIVE = ("spec_accept_token_num", "spec_draft_token_num", "spec_verify_ct")


def forest_of(stored: StoredSession, *, continuations: bool = False) -> SessionForest:
    """The forest without what takes a renderer (`metadata`, `mismatches`).

    continuations: also find the ends that the roots of an un-healed session continue; needs messages.
    """
    session = stored.session
    healed = session.healing and not session.passthrough
    continues = continued_ends(stored) if continuations and not healed else {}
    return SessionForest(
        session_id=session.id.hex,
        policy=session.policy,
        turns=_turns(stored, continues),
        active=session.active_seq,
        healed=healed,
        healer=healer_json(healer_of(session)),
        causes=causes_of(stored.nodes),
        finish_metadata=_object(session.finish_metadata),
        rewards=tuple(_reward(row) for row in stored.rewards if row.node_seq is None),
        rollout_id=session.rollout_id,
        group_id=session.group_id,
        attempt_id=session.attempt_id,
        labels=_object(session.labels),
    )


def causes_of(nodes: Iterable[NodeRow]) -> dict[str, dict[str, int]]:
    """How often turns attached otherwise than by going on, by attach kind and cause."""
    counted: dict[str, dict[str, int]] = {}
    for node in nodes:
        if node.attach_kind not in _GOES_ON and node.cause is not None:
            by_cause = counted.setdefault(node.attach_kind, {})
            by_cause[node.cause] = by_cause.get(node.cause, 0) + 1
    return counted


def history_of(stored: StoredSession) -> JsonObject:
    """The healer's counters and the causes, as the metadata of exported rows has them."""
    return history_metadata(healer_json(healer_of(stored.session)), causes_of(stored.nodes))


def healer_of(session: SessionRow) -> Healer:
    """The four healer counters."""
    return Healer(
        session.healed_turns, session.healed_prefix_tokens, session.nonlinear, session.close_unresolved
    )


def _object(text: str | None) -> JsonObject:
    value = loads(text.encode("utf-8", "surrogatepass")) if text else {}
    return value if isinstance(value, dict) else {}


def _turns(stored: StoredSession, continues: dict[int, int]) -> tuple[Turn, ...]:
    sides: defaultdict[int, dict[str, SideRow]] = defaultdict(dict)
    for side in stored.sides:
        sides[side.node_seq][side.kind] = side
    rewards: defaultdict[int | None, list[Reward]] = defaultdict(list)
    for reward in stored.rewards:
        rewards[reward.node_seq].append(_reward(reward))
    cut = {node.seq for node in stored.nodes if node.finish_reason == _CUT}
    join = _cut_continuation(stored.session)
    return tuple(
        _turn(
            node,
            sides.get(node.seq, {}),
            stored.payloads,
            tuple(rewards.get(node.seq, ())),
            join if node.parent_seq in cut else CutContinuation.NONE,
            continues.get(node.seq),
        )
        for node in stored.nodes
    )


def _cut_continuation(session: SessionRow) -> CutContinuation:
    """Without healing the template closes every turn of its render, cut ones too."""
    closed = session.on_truncated == "close" or not session.healing
    return CutContinuation.CLOSE if closed else CutContinuation.JOIN


def _turn(
    node: NodeRow,
    sides: dict[str, SideRow],
    payloads: Mapping[tuple[int, str], tuple[bytes, ...]],
    rewards: tuple[Reward, ...],
    cut_continuation: CutContinuation,
    continues: int | None,
) -> Turn:
    meta, usage = _reported(node.response)
    routed = sides.get("routed_experts")
    return Turn(
        seq=node.seq,
        parent=node.parent_seq,
        prompt_delta=node.prompt_delta,
        completion=node.completion,
        logprobs=node.logprobs,
        trim=node.trim,
        finish_reason=node.finish_reason or node.raw_finish_reason,
        weight_version=meta.get("weight_version", node.weight_version),
        weight_version_dispatch=node.weight_version_dispatch,
        cached_tokens=node.cached_tokens,
        prompt_tokens=_count((meta or usage).get("prompt_tokens")),
        engine_seconds=_seconds(meta.get("e2e_latency")),
        requested_at=node.arrived_at.timestamp(),
        committed_at=node.committed_at.timestamp(),
        response_id=node.response_id,
        after_seq=_after_seq(node),
        cut_continuation=cut_continuation,
        continues=continues,
        routed_experts=_payload(routed, payloads),
        routed_experts_start=routed.start_row if routed else None,
        indexer_topk=_payload(sides.get("indexer_topk"), payloads),
        indexer_layers=_layers(meta.get("indexer_topk_num_layers")),
        speculative=_speculative(meta),
        request_digest=_request_digest(node),
        root_class=node.root_class,
        agent=node.agent or "",
        context_digest=node.context_digest,
        rewards=rewards,
    )


def _payload(side: SideRow | None, payloads: Mapping[tuple[int, str], tuple[bytes, ...]]) -> Payload | None:
    return Payload(side.size, payloads.get((side.node_seq, side.kind), ())) if side else None


def _reported(response: str | None) -> tuple[JsonObject, JsonObject]:
    """`meta_info` of the first choice and `usage` of a stored reply; {} where the engine sent none."""
    reply = _object(response)
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    meta = choice.get("meta_info") if isinstance(choice, dict) else None
    usage = reply.get("usage")
    return (meta if isinstance(meta, dict) else {}), (usage if isinstance(usage, dict) else {})


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _layers(value: Any) -> int | None:
    return _count(value) or None


def _seconds(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _speculative(meta: JsonObject) -> Speculative | None:
    if not any(name in meta for name in _SPECULATIVE):
        return None
    accepted, drafted, verifications = (_count(meta.get(name)) for name in _SPECULATIVE)
    return Speculative(accepted, drafted, verifications, _count(meta.get("completion_tokens")))


def _request_digest(node: NodeRow) -> bytes | None:
    if node.request_key is None:
        return None
    return blake2b(node.request_key + node.head_identity, digest_size=16).digest()


def _after_seq(node: NodeRow) -> int | None:
    """What prepare saw of earlier answers to the same request, by seq: clocks of two machines may differ."""
    if node.retry_of is not None:
        return node.retry_of
    return -1 if node.cause == "concurrent" else None


def _reward(row: RewardRow) -> Reward:
    return Reward(row.name, row.value, row.weight, row.source)
