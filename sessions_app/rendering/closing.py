"""How a template closes a generated turn: learned from dummy turns, once for each kind of turn.

The close is what the template prints between the end of what the model says and the next message, e.g.
`<|im_end|>` and a newline; in templates whose stop token opens the next message it is empty. Invariant:
learning never sees a real history, so its cost is constant.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sessions_app.errors import TemplateError
from sessions_app.rendering.dummy import OPENINGS, SENTINEL, TEXT_TURN, USER_SENTINEL, calls_of, standing_for
from sessions_app.rendering.prompt_text import PromptText
from sessions_app.rendering.protocol import Ids, Message, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ChatTokenizer

_MOST_KINDS = 256


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


class Closing:
    """The closes of one template; thread-safe."""

    def __init__(self, tokenizer: ChatTokenizer, text: PromptText) -> None:
        self._tokenizer = tokenizer
        self._text = text
        self._known: dict[tuple[object, ...], Close] = {}
        self._lock = threading.Lock()

    def of(self, last_message: Message, tools: Sequence[Tool] | None) -> Close:
        """The close of a turn like this one. Raises RendererRefused when it cannot be isolated."""
        kind = (*(name for name, _ in calls_of(last_message)), _digest(tools))
        with self._lock:
            close = self._known.get(kind)
        if close is None:
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
        self, close: Close, last_message: Message, tools: Sequence[Tool] | None, new: Sequence[Message]
    ) -> tuple[str, str]:
        """Close and delta as texts when these messages follow a turn like the last one. Raises
        RendererRefused."""
        history = [*close.opening, standing_for(last_message)]
        try:
            whole = self._text([*history, *new], tools, add_generation_prompt=True)
        except TemplateError as error:
            raise RendererRefused("template_not_append_only", str(error)) from error
        if close.tail is None:
            base = self._text(history, tools, add_generation_prompt=False)
            if not whole.startswith(base):
                raise RendererRefused(
                    "template_not_append_only", "new messages change how the last turn is printed"
                )
            return close.text, whole[len(base) :]
        head, found, after = whole.partition(SENTINEL)
        if not found or not head.startswith(close.opening_text):
            raise RendererRefused(
                "template_not_append_only", "new messages change how earlier ones are printed"
            )
        if not after.startswith(close.tail):
            raise RendererRefused("close_unresolved", "new messages change how the last turn ends")
        return self._split_close(close, after[len(close.tail) :])

    def _split_close(self, close: Close, after: str) -> tuple[str, str]:
        """The close, which may start with another special token inside a history than at its end, and the
        rest."""
        if after.startswith(close.text):
            return close.text, after[len(close.text) :]
        marks = self._tokenizer.separator_texts
        rest = next((close.text[len(mark) :] for mark in marks if close.text.startswith(mark)), None)
        for moved in (mark + rest for mark in marks) if rest is not None else ():
            if after.startswith(moved):
                return moved, after[len(moved) :]
        raise RendererRefused("close_unresolved", "a turn ends differently inside a history")

    def _learn(self, turn: Message, tools: Sequence[Tool] | None) -> Close:
        problem: Exception | None = None
        for opening in OPENINGS:
            try:
                base = self._text([*opening, turn], tools, add_generation_prompt=False)
                return self._isolated(opening, turn, base, tools)
            except (TemplateError, RendererRefused) as error:
                problem = problem or error
        raise RendererRefused(
            "close_unresolved", f"the template's close of a turn cannot be told apart: {problem}"
        )

    def _isolated(
        self, opening: tuple[Message, ...], turn: Message, base: str, tools: Sequence[Tool] | None
    ) -> Close:
        if turn is TEXT_TURN:
            if base.count(SENTINEL) != 1:
                raise RendererRefused(
                    "close_unresolved", "the template does not print a turn's text exactly once"
                )
            tail: str | None = ""
            text = base.partition(SENTINEL)[2]
        else:
            tail, text = self._close_of_calls(opening, base, tools)
        return Close(opening, _up_to_user(base), tail, text, self._tokenizer.encode_after("", text))

    def _close_of_calls(
        self, opening: tuple[Message, ...], base: str, tools: Sequence[Tool] | None
    ) -> tuple[str | None, str]:
        """Tail of the call, and the close: from the last special token on, or as after a turn of text."""
        visible = base.rfind(SENTINEL)
        after = base[visible + len(SENTINEL) :] if visible >= 0 else self._generated(opening, base, tools)
        close = self._from_last_special(after)
        text_close = self.of(TEXT_TURN, tools).text
        if after.endswith(text_close) and len(text_close) > len(close or ""):
            close = text_close
        if close is None:
            if not after.endswith(text_close):
                raise RendererRefused("close_unresolved", "a turn of tool calls ends like nothing known")
            close = text_close
        return (after[: len(after) - len(close)] if visible >= 0 else None), close

    def _generated(self, opening: tuple[Message, ...], base: str, tools: Sequence[Tool] | None) -> str:
        """The part of the render that only the dummy turn can have brought."""
        prompt = self._text(opening, tools, add_generation_prompt=True)
        return base[common_length(prompt, base) :]

    def _from_last_special(self, text: str) -> str | None:
        """The text from its last special token on; None without one."""
        start = max((text.rfind(token) for token in self._tokenizer.separator_texts), default=-1)
        return text[start:] if start >= 0 else None


def _up_to_user(base: str) -> str:
    """What follows the dummy user's text may change later, e.g. reasoning that a template drops."""
    end = base.find(USER_SENTINEL)
    return base.partition(SENTINEL)[0] if end < 0 else base[: end + len(USER_SENTINEL)]


def common_length(left: str, right: str) -> int:
    """Length of the longest common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _digest(tools: Sequence[Tool] | None) -> bytes:
    if not tools:
        return b""
    return blake2b(json.dumps(tools, default=repr).encode(), digest_size=16).digest()


def overlap(served: Ids, block: Ids, limit: int | None = None) -> int:
    """Length of the longest prefix of `block` (of at most `limit` ids) that `served` ends with."""
    most = min(served.size, block.size if limit is None else limit)
    tail, front = served[served.size - most :].tolist(), block[:most].tolist()
    for length in range(most, 0, -1):
        if tail[most - length :] == front[:length]:
            return length
    return 0
