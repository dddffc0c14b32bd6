"""How a template closes a generated turn: learned from dummy turns, once for each kind of turn.

The close is what the template prints between the end of what the model says and the next message, e.g.
`<|im_end|>` and a newline; in templates whose stop token opens the next message it is empty. It is read
off turns that something follows: at the very end of a conversation templates print other things.
Invariant: learning never sees a real history, so its cost is constant.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

from sessions_app.errors import TemplateError
from sessions_app.rendering.dummy import (
    OPENINGS,
    SENTINEL,
    TEXT_TURN,
    USER_SENTINEL,
    calls_of,
    results_of,
    standing_for,
)
from sessions_app.rendering.joining import overlap
from sessions_app.rendering.prompt_text import PromptText
from sessions_app.rendering.protocol import Ids, Message, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer

_MOST_KINDS = 256
_FOLLOWER: Message = {"role": "user", "content": "dummy follower"}


@dataclass(frozen=True, slots=True)
class Close:
    """The close of one kind of turn."""

    opening: tuple[Message, ...]
    """The dummy history in front."""
    opening_text: str
    """What the template prints up to the end of the dummy user's text."""
    tail: str | None
    """What the template prints between the sentinel and the close, e.g. the end of a call; None when it
    does not print the sentinel."""
    text: str
    ids: Ids
    base: str
    """Everything the template prints up to the end of the close."""
    at_end: str
    """What it prints in place of the close at the very end of a conversation."""


class Closing:
    """The closes of one template; thread-safe."""

    def __init__(self, tokenizer: ChatTokenizer, text: PromptText) -> None:
        self._tokenizer = tokenizer
        self._text = text
        self._prompt = text.generation_prompt()
        self._known: dict[tuple[object, ...], Close] = {}
        self._lock = threading.Lock()

    def of(self, last_message: Message, tools: Sequence[Tool] | None) -> Close:
        """The close of a turn like this one. Raises RendererRefused when it cannot be isolated."""
        kind = _kind(last_message, tools)
        with self._lock:
            close = self._known.get(kind)
        return close if close is not None else self._learnt_anew(kind, last_message, tools)

    def _learnt_anew(
        self, kind: tuple[object, ...], last_message: Message, tools: Sequence[Tool] | None
    ) -> Close:
        close = self._learn(standing_for(last_message), tools)
        with self._lock:
            if len(self._known) >= _MOST_KINDS:
                self._known.pop(next(iter(self._known)))
            self._known[kind] = close
        return close

    def missing(self, served: Ids, last_message: Message, tools: Sequence[Tool] | None) -> Ids:
        """What is left to add of the close after what was served of it already."""
        glue = self.of(last_message, tools).ids
        return glue[overlap(served, glue) :]

    def before(
        self, last_message: Message, tools: Sequence[Tool] | None, new: Sequence[Message]
    ) -> tuple[Close, str]:
        """The close and the text that follows it when these messages follow a turn like the last one.
        Raises RendererRefused."""
        close = self.of(last_message, tools)
        turn = standing_for(last_message)
        try:
            whole = self._text([*close.opening, turn, *new], tools, add_generation_prompt=True)
        except TemplateError as error:
            raise RendererRefused("template_not_append_only", str(error)) from error
        delta = _behind(close, whole)
        if delta is None and self._may_have_changed(close, turn, tools):
            close = self._learnt_anew(_kind(last_message, tools), last_message, tools)
            delta = _behind(close, whole)
        if delta is None:
            raise RendererRefused(
                "template_not_append_only", "new messages change how earlier ones are printed"
            )
        return close, delta

    def _may_have_changed(self, close: Close, turn: Message, tools: Sequence[Tool] | None) -> bool:
        """Whether another look is worth it: calls are printed with their ids, and some templates print the
        day."""
        return turn is not TEXT_TURN or self._opening_text(close.opening, tools) != close.opening_text

    def prints_behind(self, turn: Message, message: Message, tools: Sequence[Tool] | None) -> bool:
        """Whether a full render shows this message's content behind the turn, wherever the seam may be."""
        for opening in OPENINGS:
            try:
                whole = self._text([*opening, turn, message], tools, add_generation_prompt=True)
            except TemplateError:
                continue
            return whole.rfind(message["content"]) > whole.rfind(SENTINEL)
        return False

    def _learn(self, turn: Message, tools: Sequence[Tool] | None) -> Close:
        problem: Exception | None = None
        for opening in OPENINGS:
            try:
                return self._isolated(opening, turn, tools)
            except (TemplateError, RendererRefused) as error:
                problem = problem or error
        if isinstance(problem, RendererRefused):
            raise problem
        raise RendererRefused(
            "close_unresolved", f"the template's close of a turn cannot be told apart: {problem}"
        )

    def _isolated(self, opening: tuple[Message, ...], turn: Message, tools: Sequence[Tool] | None) -> Close:
        told = self._text([*opening, turn], tools, add_generation_prompt=False)
        if turn is TEXT_TURN and told.count(SENTINEL) != 1:
            raise RendererRefused(
                "close_unresolved", "the template does not print a turn's text exactly once"
            )
        opening_text = self._opening_text(opening, tools)
        if not told.startswith(opening_text):
            raise RendererRefused("template_not_append_only", "a turn changes how what it answers is printed")
        start = self._end_of_sentinel(opening, told, tools)
        head, at_end = told[:start], told[start:]
        span = self._span(at_end, self._continued(opening, turn, tools, head))
        text = span if turn is TEXT_TURN else self._close_of_calls(span, tools)
        tail = span[: len(span) - len(text)]
        return Close(
            opening,
            opening_text,
            tail if SENTINEL in told else None,
            text,
            self._tokenizer.encode_after("", text),
            head + span,
            at_end.removeprefix(tail),
        )

    def _opening_text(self, opening: tuple[Message, ...], tools: Sequence[Tool] | None) -> str:
        """What the engine was shown first, up to the end of the dummy user's text: it must stay as it was."""
        prompt = self._text(opening, tools, add_generation_prompt=True)
        before, found, _ = prompt.partition(USER_SENTINEL)
        return before + found if found else ""

    def _end_of_sentinel(self, opening: tuple[Message, ...], told: str, tools: Sequence[Tool] | None) -> int:
        """Where what the model says ends; in templates that do not print it, where its turn begins."""
        visible = told.rfind(SENTINEL)
        if visible >= 0:
            return visible + len(SENTINEL)
        return common_length(self._text(opening, tools, add_generation_prompt=True), told)

    def _continued(
        self, opening: tuple[Message, ...], turn: Message, tools: Sequence[Tool] | None, head: str
    ) -> list[str]:
        """What stands behind the turn when only a generation prompt follows ("" where the template then
        drops the turn), and when messages do, for each kind that the template takes."""
        found = [self._behind_turn([*opening, turn], tools, head) or ""]
        for new in filter(None, (results_of(turn), [_FOLLOWER])):
            try:
                after = self._behind_turn([*opening, turn, *new], tools, head)
            except TemplateError:
                continue
            if after is not None and new[-1]["content"] in after:
                found.append(after)
        return found

    def _behind_turn(self, messages: list[Message], tools: Sequence[Tool] | None, head: str) -> str | None:
        whole = self._text(messages, tools, add_generation_prompt=True)
        if SENTINEL in whole:
            return whole.rpartition(SENTINEL)[2]
        return whole[len(head) :] if whole.startswith(head) else None

    def _span(self, at_end: str, continued: list[str]) -> str:
        """From the sentinel to the end of the close: what the generation prompt leaves of a prompt, else what
        prompts and longer histories share, else what stands at the very end."""
        asked, *followed = continued
        if asked and self._prompt is not None and asked.endswith(self._prompt):
            span = asked[: len(asked) - len(self._prompt)]
            if all(after.startswith(span) for after in followed):
                return span
        for left, right in combinations(continued, 2):
            shared = self._shared(left, right)
            if shared is not None and all(after.startswith(shared) for after in followed):
                return shared
        if all(after.startswith(at_end) for after in followed):
            return at_end
        raise RendererRefused("close_unresolved", "a turn ends differently when something follows")

    def _shared(self, left: str, right: str) -> str | None:
        """The common beginning in whole tokens, without the opener of the next message that both may
        share."""
        ids, other = self._tokenizer.encode(left), self._tokenizer.encode(right)
        size = min(ids.size, other.size)
        different = (ids[:size] != other[:size]).nonzero()[0]
        shared = ids[: int(different[0]) if different.size else size].tolist()
        if different.size and shared and shared[-1] in self._tokenizer.marks:
            shared = shared[:-1]
        shared = self._up_to_end(shared)
        text = self._tokenizer.decode(shared)
        has_mark = any(number in self._tokenizer.marks for number in shared)
        return text if has_mark and left.startswith(text) else None

    def _up_to_end(self, ids: list[int]) -> list[int]:
        """Ids up to the first mark behind a configured end of generation."""
        ends = [index for index, number in enumerate(ids) if number in self._tokenizer.end_ids]
        for index in range(ends[-1] + 1, len(ids)) if ends else ():
            if ids[index] in self._tokenizer.marks:
                return ids[:index]
        return ids

    def _close_of_calls(self, span: str, tools: Sequence[Tool] | None) -> str:
        """The close in the span behind the last call: from the last special token on, or as after a turn
        of text."""
        start = max((span.rfind(token) for token in self._tokenizer.separator_texts), default=-1)
        close = span[start:] if start >= 0 else ""
        text_close = self._text_close(tools)
        return text_close if span.endswith(text_close) and len(text_close) > len(close) else close

    def _text_close(self, tools: Sequence[Tool] | None) -> str:
        try:
            return self.of(TEXT_TURN, tools).text
        except RendererRefused:
            return ""


def _behind(close: Close, whole: str) -> str | None:
    """What a prompt holds behind the close of the dummy turn; None when it holds no such turn, or another
    opening."""
    if close.tail is None:
        return whole[len(close.base) :] if whole.startswith(close.base) else None
    head, found, after = whole.partition(SENTINEL)
    if not found or not head.startswith(close.opening_text):
        return None
    span = close.tail + close.text
    return after[len(span) :] if after.startswith(span) else None


def _kind(last_message: Message, tools: Sequence[Tool] | None) -> tuple[object, ...]:
    return (*(name for name, _ in calls_of(last_message)), _digest(tools))


def common_length(left: str, right: str) -> int:
    """Length of the longest common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _digest(tools: Sequence[Tool] | None) -> bytes:
    if not tools:
        return b""
    return blake2b(json.dumps(tools, default=repr).encode(), digest_size=16).digest()
