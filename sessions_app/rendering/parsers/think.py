"""Reasoning between `<think>` and `</think>` at the very start of a turn.

A block that is never closed, or a close without an opener, is plain text.
"""

import re
from dataclasses import dataclass

_OPEN, _CLOSE = "<think>", "</think>"
_START, _END, _ANALYSIS = "<|start|>", "<|end|>", "<|channel|>analysis<|message|>"
"""gpt-oss reasons in a message of its own, and begins another one to answer."""
_MARK = re.compile(r"<(/?)(think[^<>]*)>")
"""Marks of reasoning as families spell them, e.g. `<think:opensource>`."""


def opens_reasoning(generation_prompt: str) -> bool:
    """Whether a prompt ends inside a block, so that the model starts in the middle of its reasoning."""
    return generation_prompt.rfind(_OPEN) > generation_prompt.rfind(_CLOSE)


def closing_of(prompt: str, shared: str) -> str:
    """What a model says to end the reasoning that a prompt has opened; "" where none is open. `shared`: how
    much of the prompt the turn itself, printed without reasoning, begins with."""
    if prompt.endswith(_ANALYSIS):
        return "" if shared == prompt else _END + shared[shared.rfind(_START) :]
    marks = _MARK.findall(prompt)
    return f"</{marks[-1][1]}>\n\n" if marks and not marks[-1][0] else ""


@dataclass(frozen=True, slots=True)
class ThinkParser:
    """TITO_REASONING_PARSER=think."""

    after_newline: bool = False
    """Whether one newline may precede the opener (GLM)."""
    opener_optional: bool = False
    """Whether a close alone ends reasoning that began with the turn (Qwen3.5)."""

    def split(self, text: str, *, opened: bool) -> tuple[str | None, str]:
        """See ReasoningParser: one line break inside either mark and all white space behind the block
        belong to the grammar; a blank block is no reasoning."""
        start = text.removeprefix("\n") if self.after_newline else text
        if start.startswith(_OPEN):
            inside = start[len(_OPEN) :]
        elif opened or self.opener_optional:
            inside = text
        else:
            return None, text
        reasoning, close, rest = inside.partition(_CLOSE)
        if not close:
            return None, text
        reasoning = reasoning.removeprefix("\n").removesuffix("\n")
        return (reasoning if reasoning.strip() else None), rest.lstrip()


class NoReasoning:
    """TITO_REASONING_PARSER=none: everything is text."""

    def split(self, text: str, *, opened: bool) -> tuple[str | None, str]:
        """See ReasoningParser."""
        return None, text
