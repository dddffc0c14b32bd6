"""Templates that print the day: a session goes on past midnight, and is compared as of the day it began."""

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import pytest

from sessions_app.rendering import chat_template
from sessions_app.rendering.drift import drift
from sessions_app.rendering.protocol import Message
from sessions_app.rendering.template_renderer import TemplateRenderer
from tests.rendering.support import array, fed, plain

DATED = (
    "<|im_start|>system\nToday is {{ strftime_now('%Y-%m-%d') }}.<|im_end|>\n"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ASK: Message = {"role": "user", "content": "q1"}
TEXT: Message = {"role": "assistant", "content": "a1"}
NEXT: Message = {"role": "user", "content": "q2"}
MONDAY = datetime(2026, 11, 30, 23, 59)
Days = Callable[[int], None]


@pytest.fixture
def go_to(monkeypatch: pytest.MonkeyPatch) -> Days:
    """Moves to so many days after Monday."""

    def day(after: int) -> None:
        class Then(datetime):
            @classmethod
            def now(cls, tz=None):
                return MONDAY + timedelta(days=after)

        monkeypatch.setattr(chat_template, "datetime", Then)

    day(0)
    return day


def served_turn(renderer: TemplateRenderer) -> list[int]:
    return [*renderer.render([ASK], None).tolist(), *renderer.encode("a1<|im_end|>").tolist()]


def test_a_close_that_was_learned_yesterday_holds_today(go_to: Days) -> None:
    renderer = plain(DATED)
    served = served_turn(renderer)
    renderer.extend(array(served), TEXT, [NEXT], None)
    go_to(1)
    prompt = fed(served, renderer.extend(array(served), TEXT, [NEXT], None))
    assert prompt[: len(served)] == served
    assert "Today is 2026-11-30" in renderer.decode(prompt)
    assert renderer.decode(prompt).endswith(
        "a1<|im_end|>\n<|im_start|>user\nq2<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_path_is_rendered_as_of_the_day_it_began(go_to: Days) -> None:
    renderer = plain(DATED)
    served = np.asarray(served_turn(renderer), dtype=np.int32)
    go_to(3)
    assert drift(renderer, [ASK, TEXT], None, served).broken is not None
    found = drift(renderer, [ASK, TEXT], None, served, MONDAY)
    assert (found.mismatches, found.broken) == ((), None)


def test_the_head_is_the_same_on_every_day(go_to: Days) -> None:
    renderer = plain(DATED)
    head = renderer.head_text(None)
    go_to(1)
    assert renderer.head_text(None) == head
