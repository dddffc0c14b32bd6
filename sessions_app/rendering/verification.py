"""What a renderer must keep so that served ids can be continued and read, checked on small conversations.

Pure: it asks the renderer only. Every finding shows the first tokens or values that differ.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sessions_app.errors import TitoError
from sessions_app.rendering.parsers.think import closing_of
from sessions_app.rendering.protocol import Extension, Ids, Message, Renderer, RendererRefused
from sessions_app.rendering.token_diff import first_difference, token_diff
from sessions_app.rendering.verification_cases import SEAMS, SYSTEM, TOOL, TURNS, USER, Case, with_model_ids

OK, WARN, FAIL, NONE = "ok", "warn", "fail", "none"
_EDITION = 3
"""Goes up when a check is added, or judges otherwise: what was stored before is then verified again."""
_SCAFFOLD_IDS = 8
"""Last ids of a prompt that may be an empty block of reasoning."""
_ROLES = {"assistant": WARN, "system": WARN, "tool": WARN, "user": FAIL}
"""Verdict where a role cannot follow a generated turn."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table."""

    area: str
    """seam: how a turn is continued; role: who may follow one; parse: how a turn is read."""
    name: str
    verdict: str
    """ok; warn: healed, or impossible in this template; fail: sessions shatter or turns are misread; none:
    the template knows no such thing."""
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        """For storage with the profile."""
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, str]) -> "Check":
        """The inverse of `as_json`."""
        return cls(stored["area"], stored["name"], stored["verdict"], stored["detail"])


def verify(renderer: Renderer) -> tuple[Check, ...]:
    """Every check, in the order of the table."""
    return (
        *(_guarded("seam", case, _seam, renderer) for case in SEAMS),
        *(_role(renderer, role, otherwise) for role, otherwise in _ROLES.items()),
        *read_back(renderer),
    )


def read_back(renderer: Renderer) -> tuple[Check, ...]:
    """The checks of its parsers."""
    return tuple(_guarded("parse", case, _round_trip, renderer) for case in TURNS)


def failed(checks: Sequence[Check]) -> bool:
    """Whether anything failed."""
    return any(check.verdict == FAIL for check in checks)


def verification_key(renderer: Renderer, tool_parser: str, reasoning_parser: str) -> str:
    """Hex digest of what the checks depend on: equal keys verify alike."""
    parts = [_EDITION, renderer.name, renderer.fingerprint, tool_parser, reasoning_parser]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def cannot_render(renderer: Renderer) -> str | None:
    """The words of a template that prints no conversation at all; None where it prints some."""
    problem: str | None = None
    for messages in ([USER], [SYSTEM, USER]):
        for tools in (None, [TOOL]):
            try:
                renderer.render(messages, tools)
            except TitoError as error:
                problem = problem or str(error)
            else:
                return None
    return problem


def _guarded(
    area: str, case: Case, check: Callable[[Renderer, Case], tuple[str, str]], renderer: Renderer
) -> Check:
    try:
        verdict, detail = check(renderer, case)
    except TitoError as error:
        verdict, detail = NONE, f"the template refuses it: {error}"
    except Exception as error:
        verdict, detail = FAIL, f"{type(error).__name__}: {error}"
    return Check(area, case.name, verdict, detail)


def _seam(renderer: Renderer, case: Case) -> tuple[str, str]:
    """Served ids, continued, against a fresh render of the same messages."""
    prompt = renderer.render(case.history, case.tools)
    fresh = renderer.render([*case.history, case.turn, *case.new], case.tools)
    said, rewritten = _said(renderer, case, prompt, fresh)
    if said is None:
        return NONE, "the template does not print it"
    served = np.concatenate([prompt, _thought(renderer, case, prompt, said), said])
    try:
        extension = renderer.extend(served, case.turn, case.new, case.tools, cut=not case.stop_served)
    except RendererRefused as error:
        return (FAIL if case.essential else WARN), f"{error.cause}: {error}"
    except TitoError as error:
        return (FAIL if case.essential else WARN), f"refused, though the template renders it: {error}"
    fed = _fed(served, extension)
    if renderer.decode(fed) == renderer.decode(fresh):
        return OK, ""
    diff = token_diff(
        fed.tolist(), fresh.tolist(), lambda ids: renderer.decode(np.asarray(ids, dtype=np.int32))
    )
    rewritten = rewritten or _closed_otherwise(fed, fresh, renderer.comparison.closers)
    if rewritten and renderer.decode(fresh).endswith(renderer.decode(extension.delta)):
        return WARN, f"served tokens stay, a fresh render would change them {diff}"
    return FAIL, diff


def _closed_otherwise(fed: Ids, fresh: Ids, closers: frozenset[int]) -> bool:
    """Whether they differ in nothing but in what closes turns."""
    if fed.size != fresh.size:
        return False
    return closers.issuperset(np.concatenate([fed[fed != fresh], fresh[fed != fresh]]).tolist())


def _fed(served: Ids, extension: Extension) -> Ids:
    return np.concatenate([served[: served.size - extension.trim], extension.ids])


def _said(renderer: Renderer, case: Case, prompt: Ids, fresh: Ids) -> tuple[Ids | None, bool]:
    """What the model says to mean this turn, up to its stop token; and whether a fresh render prints the turn
    differently. None: the template does not print what makes the turn."""
    inside = fresh[prompt.size :]
    kept = fresh[: prompt.size].tolist() == prompt.tolist() and _prints(renderer, inside, case)
    if kept and (end := _stop(renderer, inside, case)) is not None:
        return inside[: end + case.stop_served], False
    alone = _alone(renderer, case, prompt)
    return (_spoken(renderer, alone, case) if _prints(renderer, alone, case) else None), not kept


def _alone(renderer: Renderer, case: Case, prompt: Ids) -> Ids:
    """The turn's ids as the last of a conversation, behind what it shares with the prompt."""
    told = renderer.render([*case.history, case.turn], case.tools, add_generation_prompt=False)
    shared = first_difference(told.tolist(), prompt.tolist())
    return told[shared:] if shared is not None else told[:0]


def _spoken(renderer: Renderer, ids: Ids, case: Case) -> Ids:
    end = _stop(renderer, ids, case)
    return ids if end is None else ids[: end + case.stop_served]


def _stop(renderer: Renderer, ids: Ids, case: Case) -> int | None:
    """Index of the first stop token behind everything that makes the turn."""
    stops = (index for index, number in enumerate(ids.tolist()) if number in renderer.stop_token_ids)
    return next((index for index in stops if _prints(renderer, ids[:index], case)), None)


def _prints(renderer: Renderer, ids: Ids, case: Case) -> bool:
    text = renderer.decode(ids)
    content: Any = case.turn["content"]
    return content in text and all(piece in text for piece in case.printed)


def _role(renderer: Renderer, role: str, otherwise: str) -> Check:
    if role in renderer.append_roles:
        return Check("role", role, OK)
    return Check("role", role, otherwise, "cannot follow a generated turn")


def _round_trip(renderer: Renderer, case: Case) -> tuple[str, str]:
    """The turn as the template prints it, read back; calls with ids of ours, else as models make them."""
    verdict, detail = _read_back(renderer, case)
    if verdict != FAIL or not case.turn.get("tool_calls"):
        return verdict, detail
    again = _read_back(renderer, replace(case, turn=with_model_ids(case.turn)))
    return again if again[0] == OK else (verdict, detail)


def _read_back(renderer: Renderer, case: Case) -> tuple[str, str]:
    prompt = renderer.render(case.history, case.tools)
    alone = _alone(renderer, case, prompt)
    if not _prints(renderer, alone, case):
        return NONE, "the template does not print it"
    said = _spoken(renderer, alone, case)
    parsed = renderer.parse(np.concatenate([_thought(renderer, case, prompt, said), said]), case.tools)
    wanted, found = _facts(case.turn), _facts(parsed.message)
    for field, value in wanted.items():
        if found[field] != value:
            return _misread(renderer, prompt, wanted, f"{field} {value!r} is read back as {found[field]!r}")
    return (FAIL, "read back as malformed") if parsed.ill_formed else (OK, "")


def _misread(renderer: Renderer, prompt: Ids, wanted: dict[str, Any], detail: str) -> tuple[str, str]:
    """No failure where the generation prompt has ended the reasoning before the model could begin it."""
    if wanted["reasoning"] and "</think" in renderer.decode(prompt[-_SCAFFOLD_IDS:]):
        return NONE, "the generation prompt leaves no room for reasoning"
    return FAIL, detail


def _thought(renderer: Renderer, case: Case, prompt: Ids, said: Ids) -> Ids:
    """What the model says first where the prompt has opened its reasoning and the turn has none."""
    told = renderer.render([*case.history, case.turn], case.tools, add_generation_prompt=False)
    shared = prompt[: first_difference(told.tolist(), prompt.tolist())]
    closing = closing_of(renderer.decode(prompt), renderer.decode(shared))
    return renderer.encode("" if closing.strip() in renderer.decode(said) else closing)


def _facts(message: Message) -> dict[str, Any]:
    """What must survive the way to ids and back; white space around texts is the template's business."""
    functions = [call["function"] for call in message.get("tool_calls") or []]
    return {
        "content": (message.get("content") or "").strip(),
        "reasoning": (message.get("reasoning_content") or "").strip(),
        "calls": [(function["name"], json.loads(function["arguments"])) for function in functions],
    }
