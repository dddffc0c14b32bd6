"""Sessions that never took place: plain turns whose ids are random, as a dump to be loaded."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import numpy as np

from sessions_app.history.context import ROOT, context_digest
from sessions_app.json_text import text_of
from sessions_app.packing import pack_ids, pack_logprobs
from trainer_export.dumps.reading import Dump, Row

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_DIGEST = b"0" * 16


@dataclass(frozen=True, slots=True)
class Size:
    """What is exported."""

    sessions: int
    turns: int
    prompt: int
    """Ids added a turn."""
    completion: int
    """Ids sampled a turn."""

    @property
    def tokens(self) -> int:
        """Of one session."""
        return self.turns * (self.prompt + self.completion)


def made_up(size: Size, vocabulary: int) -> Dump:
    """A session of plain turns whose ids are random."""
    rng = np.random.default_rng(0)
    digest, total = ROOT, 0
    tables: dict[str, list[Row]] = {name: [] for name in ("record", "node", "message", "checkpoint")}
    for seq in range(size.turns):
        prompt = rng.integers(0, vocabulary, size.prompt).astype(np.int32)
        completion = rng.integers(0, vocabulary, size.completion).astype(np.int32)
        digest = context_digest(digest, 0, prompt, completion)
        logprobs = pack_logprobs(rng.normal(-1, 0.3, size.completion).astype("<f4").astype(np.float64))
        total += size.prompt + size.completion
        tables["record"].append(_record(seq))
        tables["node"].append(_node(seq, digest, total, size.completion))
        tables["message"] += _messages(seq)
        tables["checkpoint"].append(
            {
                "node_seq": seq,
                "boundary_trim": 0,
                "glue_tokens": 0,
                "prompt_delta": pack_ids(prompt),
                "completion": pack_ids(completion),
                "logprobs": logprobs.data,
                "logprob_width": logprobs.width,
            }
        )
    tables["head"] = [
        {
            "digest": _DIGEST,
            "identity": _DIGEST,
            "template_kwargs": "{}",
            "template_fingerprint": "",
            "tokenizer_fingerprint": "",
        }
    ]
    return Dump(uuid4(), "default", _session(size), tables)


def _session(size: Size) -> Row:
    counters = (
        "healed_turns", "healed_prefix_tokens", "nonlinear", "close_unresolved", "forks", "rollbacks",
        "retries", "resets", "prompt_tokens",
    )  # fmt: skip
    return {
        "history_policy": "tree",
        "on_nonlinear": "reset",
        "on_truncated": "refuse",
        "retry_policy": "resample",
        "message_matcher": "strict",
        "healing": True,
        "labels": '{"made_up": "measuring"}',
        "sampling": "{}",
        "status": "finished",
        "created_at": _NOW,
        "last_activity_at": _NOW,
        "finished_at": _NOW,
        "version": size.turns,
        "next_seq": size.turns,
        "active_seq": size.turns - 1,
        "passthrough": False,
        "keyless": False,
        "added_tokens": size.turns * size.prompt,
        "generated_tokens": size.turns * size.completion,
        **dict.fromkeys(counters, 0),
    }


def _record(seq: int) -> Row:
    reply = {
        "choices": [{"meta_info": {"weight_version": "1", "e2e_latency": 0.5, "prompt_tokens": 1}}],
    }
    return {
        "id": seq,
        "state": "committed",
        "protocol": "openai_chat",
        "path": "/v1/chat/completions",
        "stream": False,
        "node_seq": seq,
        "message_count": 2 * seq + 1,
        "raw_base": 0,
        "response": text_of(reply),
        "process": "measuring",
        "arrived_at": _NOW,
    }


def _node(seq: int, digest: bytes, total: int, completion: int) -> Row:
    return {
        "seq": seq,
        "parent_seq": seq - 1 if seq else None,
        "root_seq": 0,
        "depth": seq,
        "message_start": 2 * seq,
        "message_count": 2 * seq + 2,
        "raw_digest": _DIGEST,
        "head_digest": _DIGEST,
        "head_identity": _DIGEST,
        "context_digest": digest,
        "attach_kind": "append" if seq else "root",
        "finish_reason": "stop",
        "ill_formed": False,
        "prompt_tokens": total - completion,
        "total_tokens": total,
        "weight_version": "1",
        "record_id": seq,
        "committed_at": _NOW,
    }


def _messages(seq: int) -> list[Row]:
    return [
        {
            "node_seq": seq,
            "position": 2 * seq + offset,
            "role": role,
            "generated": bool(offset),
            "body": '{"content":"…"}',
        }
        for offset, role in enumerate(("user", "assistant"))
    ]
