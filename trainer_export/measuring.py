"""How fast exports are: sessions made up in the database, exported to Parquet, and removed again."""

import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import psycopg

from sessions_app.history.context import ROOT, context_digest
from sessions_app.json_text import text_of
from sessions_app.packing import pack_ids, pack_logprobs
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import Database
from tito_project.configuration import Configuration
from trainer_export.dumps.reading import Dump, Row, load
from trainer_export.jobs import job as jobs
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRequest
from trainer_export.jobs.running import look_at, on_loop

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


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement."""

    size: Size
    tokens: int
    seconds: float
    """Processor time of this process."""
    peak_mb: float
    """Most memory this process ever had."""

    @property
    def tokens_a_minute(self) -> float:
        """On one core."""
        return self.tokens / self.seconds * 60


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


def measure(
    conninfo: str, configuration: Configuration, renderer_of: Callable[[str], Renderer], size: Size
) -> Measured:
    """Make up sessions, export them natively to Parquet, remove them."""
    with _sessions(conninfo, made_up(size, renderer_of("default").vocab_size), size.sessions) as ids:
        folder = Path(tempfile.mkdtemp(prefix="tito-measuring-"))
        try:
            started = time.process_time()
            tokens = _export(conninfo, configuration, renderer_of, ids, folder)
            seconds = time.process_time() - started
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(size, tokens, seconds, peak)


@contextmanager
def _sessions(conninfo: str, dump: Dump, count: int) -> Iterator[list[UUID]]:
    ids = [uuid4() for _ in range(count)]
    try:
        for session_id in ids:
            load(conninfo, dump, session_id)
        yield ids
    finally:
        with psycopg.connect(conninfo) as connection:
            connection.execute("DELETE FROM trainer_export_sample WHERE session_id = ANY(%s)", (ids,))
            for table in ("node", "message", "tokencheckpoint", "record", "requesthead"):
                connection.execute(f"DELETE FROM sessions_app_{table} WHERE session_id = ANY(%s)", (ids,))
            connection.execute("DELETE FROM sessions_app_session WHERE id = ANY(%s)", (ids,))


def _export(
    conninfo: str,
    configuration: Configuration,
    renderer_of: Callable[[str], Renderer],
    ids: list[UUID],
    folder: Path,
) -> int:
    request = ExportRequest(str(folder), filters=Filters(sessions=[one.hex for one in ids]))

    async def create(db: Database) -> UUID | None:
        return await jobs.create(db, request, "command")

    job_id = on_loop(conninfo, create)
    assert job_id is not None
    job = look_at(conninfo, configuration, renderer_of, job_id, patient=False)
    assert job is not None
    with psycopg.connect(conninfo) as connection:
        for table in ("frozensession", "exportshard"):
            connection.execute(f"DELETE FROM trainer_export_{table} WHERE job_id = %s", (job_id,))
        connection.execute("UPDATE trainer_export_sample SET job_id = NULL WHERE job_id = %s", (job_id,))
        connection.execute("DELETE FROM trainer_export_exportjob WHERE id = %s", (job_id,))
    if job.error_text:
        raise RuntimeError(job.error_text)
    return job.tokens
