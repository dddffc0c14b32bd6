"""The part the demo engine plays: a small assistant that calls tools for sums and files and then uses the
results.

Pure: the same conversation and the same random source give the same text. It is no model; it only has to make
conversations with every shape that matters (text, reasoning, one call, parallel calls, results used).
"""

import json
import random
import re

from sessions_app.backends.demo.conversation import Conversation, OfferedTool

_SUM = re.compile(r"(-?\d+(?:\.\d+)?)\s*([-+*/×])\s*(-?\d+(?:\.\d+)?)")
_SPOKEN_SUM = re.compile(
    r"(add|multiply|subtract)\D{0,20}(-?\d+(?:\.\d+)?)\D{1,15}(-?\d+(?:\.\d+)?)", re.IGNORECASE
)
_FILES = re.compile(r"\b(files?|folders?|director(?:y|ies)|list)\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/])(\.{0,2}/[\w./-]*\w)")
_SIGNS = {"add": "+", "multiply": "*", "subtract": "-"}
_CALCULATORS = re.compile(r"calc|add|sum|math|eval|multiply", re.IGNORECASE)
_LISTERS = re.compile(r"list|ls|dir|files", re.IGNORECASE)
_REMARKS = (
    "I had a look.",
    "Here is what I found:",
    "Done — nothing unexpected.",
    "That was quick, naïve as it may look ✓",
)
_MOST_CALLS = 3
_REASONING_SHARE = 0.4


def reply(conversation: Conversation, chance: random.Random) -> str:
    """What the assistant says next, without the stop token."""
    calls = _calls(conversation, chance)
    body = "\n".join(calls) if calls else _answer(conversation, chance)
    if calls and chance.random() < 0.3:
        body = f"{chance.choice(_REMARKS)}\n{body}"
    return _reasoning(conversation, bool(calls), chance) + body


def _reasoning(conversation: Conversation, calling: bool, chance: random.Random) -> str:
    wanted = conversation.thinking_open or chance.random() < _REASONING_SHARE
    if conversation.thinking_done or not wanted:
        return ""
    plan = "a tool will tell me" if calling else "I can answer this directly"
    thought = f"{len(conversation.turns)} messages so far; {plan}.\n</think>\n\n"
    return thought if conversation.thinking_open else f"<think>\n{thought}"


def _answer(conversation: Conversation, chance: random.Random) -> str:
    if results := conversation.results:
        listed = "; ".join(" ".join(result.split())[:200] for result in results)
        return f"{chance.choice(_REMARKS)} The tools say: {listed}."
    said = " ".join(conversation.turns[-1].text.split())
    short = said if len(said) <= 80 else f"{said[:80]}…"
    return f"{chance.choice(_REMARKS)}\n\n  You said: {short}" if said else "I am listening."


def _calls(conversation: Conversation, chance: random.Random) -> list[str]:
    """Tool calls for the last user turn; none after results, for they have to be used."""
    last = conversation.turns[-1]
    if last.role != "user":
        return []
    calls = []
    if calculator := _named(conversation.tools, _CALCULATORS):
        calls += [_call(calculator, _sum_arguments(calculator, *each), chance) for each in _sums(last.text)]
    if (lister := _named(conversation.tools, _LISTERS)) and _FILES.search(last.text):
        calls.append(_call(lister, _path_arguments(lister, last.text), chance))
    return calls[:_MOST_CALLS]


def _sums(text: str) -> list[tuple[str, str, str]]:
    written = [match.groups() for match in _SUM.finditer(text)]
    spoken = [(a, _SIGNS[verb.lower()], b) for verb, a, b in _SPOKEN_SUM.findall(text)]
    return [(left, sign.replace("×", "*"), right) for left, sign, right in [*written, *spoken]]


def _named(tools: tuple[OfferedTool, ...], pattern: re.Pattern[str]) -> OfferedTool | None:
    return next((tool for tool in tools if pattern.search(tool.name)), None)


def _sum_arguments(tool: OfferedTool, left: str, sign: str, right: str) -> dict[str, object]:
    """One text parameter takes the expression, two take the numbers."""
    names = tool.parameters or ("expression",)
    if len(names) == 1:
        return {names[0]: f"{left} {sign} {right}"}
    return {names[0]: json.loads(left), names[1]: json.loads(right)}


def _path_arguments(tool: OfferedTool, text: str) -> dict[str, object]:
    found = _PATH.search(text)
    return {tool.parameters[0]: found.group(1) if found else "."} if tool.parameters else {}


def _call(tool: OfferedTool, arguments: dict[str, object], chance: random.Random) -> str:
    """The call as a model would write it: spacing of the JSON is a matter of chance."""
    separators = chance.choice([(", ", ": "), (",", ":"), (", ", ":"), (" , ", " : ")])
    body = json.dumps({"name": tool.name, "arguments": arguments}, separators=separators, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"
