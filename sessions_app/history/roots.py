"""What kind of conversation a root begins: the agent's own, a sub-agent's, or a side call.

Told by rules from what the request says and from the roots before it, with the evidence in words, so that a
person can judge and overrule it. Invariant: pure; a class is a label and changes neither matching nor what is
fed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.history.causes import Cause
from sessions_app.history.harness.tolerances import without_billing_header, without_reminders
from sessions_app.history.matchers.base import Message

MAIN, SUBAGENT, SIDE = "main", "subagent", "side"

_SYSTEM = ("system", "developer")
_TITLE = re.compile(
    r"\b(?:generate|create|write|come up with|suggest|extract)\b.{0,80}\btitle\b|\btitle generator\b",
    re.I | re.S,
)
_SUMMARY = re.compile(
    r"\b(?:summari[sz]es?|create|write|provide|produce)\b.{0,60}"
    r"\b(?:conversation|session|summary|chat history)\b",
    re.I | re.S,
)
_PROBE = re.compile(r"(?:quota|ping|test|hi|hello|count)[.!?]?", re.I)
_RESUMED = re.compile(
    r"session is being continued from a previous conversation"
    r"|another language model started to solve this problem and produced a summary",
    re.I,
)
_CONTINUED = re.compile(
    rf"{_RESUMED.pattern}|<(?:conversation_)?summary>|<state_snapshot>"
    r"|summary of (?:the|our) (?:previous |earlier )?conversation",
    re.I,
)
_ASKED_BACK = re.compile(r"\s*What did we do so far\?\s*")
"""What opencode has its user say before the summary, which stands as a reply."""
_NAMED = re.compile(r"\bYou are (?:an? |the )?([A-Z][\w+-]*(?: [A-Z][\w+-]*){0,4})")
_SUBAGENT = re.compile(r"\byou are\b[^.\n]{0,100}\bsub-?agent\b", re.I)
_AGENT_HEADERS = ("x-tito-agent", "x-openai-subagent", "x-agent-name")
_SUBAGENT_HEADER = "x-openai-subagent"
BY_ITS_OWN_WORDS = "its system prompt calls it a sub-agent"
BY_ITS_PROMPT = "no tools, and the system prompt asks for a summary"
SUMS_UP = "no tools, and its last message asks for a summary of what came before"
_READ = 4000
"""Characters of a prompt that the rules look at."""


@dataclass(frozen=True, slots=True)
class EarlierRoot:
    """A root that the session has already."""

    seq: int
    root_class: str | None
    system: str
    """Its system prompt, "" for none."""


@dataclass(frozen=True, slots=True)
class RootLabel:
    """What a new root is taken for."""

    root_class: str
    evidence: str
    """Why, in one sentence."""
    agent: str | None
    """Name of the agent, where a header or the system prompt gives one."""
    cause: Cause | None = None
    """What `unrelated_history` is refined to; None = leave it."""
    continues: int | None = None
    """The root that a compacted conversation goes on from."""


def label_root(
    messages: Sequence[Message],
    parameters: Mapping[str, Any],
    headers: Mapping[str, str],
    earlier: Sequence[EarlierRoot],
) -> RootLabel:
    """The label of a new root. `parameters`: the request in OpenAI chat form."""
    system, opening = system_text(messages), next(_opening_texts(messages), "")
    agent = agent_of(system, headers)
    side = _side_evidence(system, opening, messages, parameters)
    if side is not None:
        return RootLabel(SIDE, side, agent, Cause.SIDE_CALL)
    if _SUBAGENT_HEADER in headers:
        return RootLabel(SUBAGENT, f"the header {_SUBAGENT_HEADER} says so", agent, Cause.SUBAGENT)
    if _SUBAGENT.search(system[:_READ]):
        return RootLabel(SUBAGENT, BY_ITS_OWN_WORDS, agent, Cause.SUBAGENT)
    mains = [root for root in earlier if root.root_class in (None, MAIN)]
    if not mains:
        return RootLabel(MAIN, "the first conversation of its session", agent)
    compacted = _compacted(system, summary_of(messages), agent, earlier, mains[-1])
    if compacted is not None:
        return compacted
    same = [root for root in mains if _alike(root.system, system)]
    if not same:
        evidence = f"another system prompt than that of root {mains[0].seq}"
        return RootLabel(SUBAGENT, evidence, agent, Cause.SUBAGENT)
    return RootLabel(MAIN, f"the system prompt of root {same[-1].seq}", agent)


def summary_of(messages: Sequence[Message]) -> str | None:
    """The message that stands for an earlier conversation, if there is one: of the user before the first
    reply, or that reply itself.
    """
    texts = list(_opening_texts(messages))
    if texts and _ASKED_BACK.fullmatch(texts[-1]):
        return next((_text(message) for message in messages if message.get("role") == "assistant"), None)
    return next((text for text in texts if _CONTINUED.search(text[:_READ])), None)


def _compacted(
    system: str, summary: str | None, agent: str | None, earlier: Sequence[EarlierRoot], latest: EarlierRoot
) -> RootLabel | None:
    """The label of a conversation that goes on from a summary of an earlier one, be it a sub-agent's. Under
    a new system prompt it must say so in plain words. `latest`: main root.
    """
    if summary is None:
        return None
    same = [root for root in earlier if root.root_class != SIDE and _alike(root.system, system)]
    if same:
        evidence = f"the system prompt of root {same[-1].seq}, going on from a summary"
        root_class = same[-1].root_class or MAIN
        return RootLabel(root_class, evidence, agent, Cause.COMPACTION, same[-1].seq)
    if _RESUMED.search(summary[:_READ]):
        evidence = f"it says that it goes on from a summary; the latest main root is {latest.seq}"
        return RootLabel(MAIN, evidence, agent, Cause.COMPACTION, latest.seq)
    return None


def _alike(one: str, other: str) -> bool:
    """Whether two system prompts are one, but for a checksum."""
    return one == other or without_billing_header(one) == without_billing_header(other)


def agent_of(system: str, headers: Mapping[str, str]) -> str | None:
    """The name an agent goes by: from a header, else from how its system prompt begins."""
    named = next((headers[name] for name in _AGENT_HEADERS if headers.get(name)), None)
    if named is not None:
        return named[:100]
    found = _NAMED.search(system[:_READ])
    return found[1] if found else None


def system_text(messages: Sequence[Message]) -> str:
    """The system prompt that a conversation begins with."""
    first = messages[0] if messages else {}
    return _text(first) if first.get("role") in _SYSTEM else ""


def _side_evidence(
    system: str, opening: str, messages: Sequence[Message], parameters: Mapping[str, Any]
) -> str | None:
    """What shows that a request is none of the agent's own turns; None = nothing does."""
    if parameters.get("tools"):
        return None
    limit = parameters.get("max_tokens") or parameters.get("max_completion_tokens")
    if limit == 1 and len(messages) == 1 and _PROBE.fullmatch(opening.strip()):
        return "a probe: no tools, one token asked for"
    for text in (system, opening):
        if _TITLE.search(text[:_READ]):
            return "no tools, and the prompt asks for a title"
    if _SUMMARY.search(system[:_READ]):
        return BY_ITS_PROMPT
    return SUMS_UP if _sums_up(messages) else None


def _sums_up(messages: Sequence[Message]) -> bool:
    """Whether a conversation that was held is asked for its summary."""
    last = messages[-1] if messages else {}
    held = any(message.get("role") == "assistant" for message in messages)
    return held and last.get("role") == "user" and _SUMMARY.search(_text(last)[:_READ]) is not None


def _opening_texts(messages: Sequence[Message]) -> Iterator[str]:
    """What users said before the first reply, without reminders."""
    for message in messages:
        if message.get("role") == "assistant":
            return
        if message.get("role") == "user":
            yield without_reminders(_text(message))


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )
