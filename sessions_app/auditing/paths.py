"""One stored path against a fresh render of it: from rows to a finding. Reads only."""

import json
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from sessions_app.auditing.appearing import appears_at
from sessions_app.errors import TitoError
from sessions_app.insight.paths import PATH, TokenPath, load_path, spans_within
from sessions_app.models import DriftFinding, Node, Record, RequestHead
from sessions_app.rendering.comparator import Mismatch
from sessions_app.rendering.drift import Drift, drift
from sessions_app.rendering.protocol import Renderer

logger = logging.getLogger(__name__)

_BODIES = (
    PATH
    + "SELECT m.node_seq, m.body FROM path JOIN sessions_app_message m ON m.session_id = %(session)s "
    + "AND m.node_seq = path.seq ORDER BY m.node_seq, m.position"
)
_TYPES = ("special_token_count", "special_token_type", "assistant_text", "non_assistant_text")
_TOLERATED = frozenset({"assistant_text"})
_MOST_DETAILS = 5
_BEFORE, _AFTER = 100, 400
"""Characters shown on either side of the first one that differs."""


def finding_of(session_id: UUID, seq: int, renderer: Renderer) -> DriftFinding | None:
    """The finding of the path that ends at a node, not stored yet; None where there is no such node."""
    node = Node.objects.filter(session=session_id, seq=seq).values_list("head_digest")
    head = RequestHead.objects.filter(session=session_id, digest__in=node).first()
    path = load_path(session_id, seq)
    if head is None or not path.spans:
        return None
    base = DriftFinding(
        session_id=session_id,
        node_seq=seq,
        renderer=renderer.name,
        renderer_fingerprint=renderer.fingerprint,
        template_fingerprint=head.template_fingerprint,
        served_tokens=len(path.ids),
        audited_at=timezone.now(),
    )
    if reason := _incomparable(head, path, renderer):
        return _unknown(base, reason, "")
    try:
        stored = _Stored(
            _as_served(renderer, head),
            _messages(session_id, seq),
            _tools(head),
            _began(session_id, path),
            path,
        )
        found = stored.drift_to(len(path.spans) - 1)
    except TitoError as error:
        return _unknown(base, "render_failed", str(error))
    except Exception as error:
        logger.warning("node %s:%d could not be audited: %s", session_id.hex, seq, type(error).__name__)
        return _unknown(base, "render_failed", f"{type(error).__name__}: {error}")
    finding = _filled(base, found, path)
    if finding.outcome != "same":
        finding.appears_node_seq = stored.appears_in()
    return finding


@dataclass(frozen=True, slots=True)
class _Stored:
    """A path with all that it is rendered with."""

    renderer: Renderer
    messages: list[tuple[int, Any]]
    """Each with the node that it is of."""
    tools: list[Any] | None
    began: datetime | None
    path: TokenPath

    def drift_to(self, turn: int) -> Drift:
        """Of the path up to a turn. Raises what a render raises."""
        span = self.path.spans[turn]
        messages = [message for seq, message in self.messages if seq <= span.turn.seq]
        return drift(self.renderer, messages, self.tools, self.path.ids[: span.end], self.began)

    def appears_in(self) -> int | None:
        """The node with whose turn it appears; None where an earlier turn does not render by itself."""
        spans = self.path.spans
        try:
            return spans[
                appears_at(len(spans), lambda turn: _outcome(self.drift_to(turn)) != "same")
            ].turn.seq
        except Exception:
            return None


def _incomparable(head: RequestHead, path: TokenPath, renderer: Renderer) -> str | None:
    """Why ids and render have nothing to do with each other."""
    if path.tokenizers != {renderer.tokenizer_fingerprint}:
        return "tokenizer_changed"
    return "template_changed" if head.template_fingerprint != renderer.template_fingerprint else None


def _as_served(renderer: Renderer, head: RequestHead) -> Renderer:
    return renderer.with_kwargs(json.loads(head.template_kwargs))


def _messages(session_id: UUID, seq: int) -> list[tuple[int, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_BODIES, {"session": session_id, "seq": seq})
        return [(node_seq, json.loads(body)) for node_seq, body in cursor.fetchall()]


def _began(session_id: UUID, path: TokenPath) -> datetime | None:
    """When the path's first request came."""
    first = Record.objects.filter(session=session_id, node_seq=path.spans[0].turn.seq)
    return first.order_by("arrived_at").values_list("arrived_at", flat=True).first()


def _tools(head: RequestHead) -> list[Any] | None:
    return json.loads(head.tools) if head.tools is not None else None


def _unknown(finding: DriftFinding, reason: str, text: str) -> DriftFinding:
    finding.outcome, finding.reason = "unknown", reason
    finding.details = json.dumps([{"type": "error", "detail": text}] if text else [])
    return finding


def _filled(finding: DriftFinding, found: Drift, path: TokenPath) -> DriftFinding:
    types = [mismatch.type for mismatch in found.mismatches]
    for name in _TYPES:
        setattr(finding, name, types.count(name))
    finding.fresh_tokens = found.fresh_tokens
    finding.details = json.dumps([_shown(mismatch) for mismatch in found.mismatches[:_MOST_DETAILS]])
    finding.outcome = _outcome(found)
    if broken := found.broken:
        finding.template_mismatch = broken.template_mismatch
        finding.retoken_mismatch = broken.retoken_mismatch
        finding.others_mismatch = broken.others_mismatch
        finding.first_token = broken.position
        spans = spans_within(path, broken.position, broken.position + 1)
        finding.first_node_seq = spans[0].turn.seq if spans else None
    return finding


def _outcome(found: Drift) -> str:
    if any(mismatch.type not in _TOLERATED for mismatch in found.mismatches):
        return "defect"
    return "expected" if found.mismatches or found.broken else "same"


def _shown(mismatch: Mismatch) -> dict[str, str | int]:
    """The comparator's entry, its texts cut around the first difference."""
    expected, actual = mismatch.expected_text, mismatch.actual_text
    pairs = enumerate(zip(expected, actual, strict=False))
    differs = next((at for at, (a, b) in pairs if a != b), min(len(expected), len(actual)))
    texts = {"expected_text": _cut(expected, differs), "actual_text": _cut(actual, differs)}
    return {**mismatch.as_json(), **texts}


def _cut(text: str, around: int) -> str:
    start, stop = max(0, around - _BEFORE), around + _AFTER
    return ("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else "")
