"""What becomes of a turn whose path the renderer cannot continue: a full render, with its cause."""

from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import HistoryEvent
from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server
from tests.integration.test_cases import says
from tests.toy import write_model

Pair = tuple[Client, FakeEngine]
HEAD = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
TAIL = "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
TEMPLATES = {
    "close_unresolved": HEAD + "{% if m.role == 'assistant' %} {{ m.content }}{% endif %}" + TAIL,
    "template_not_append_only": "{{ messages | length }}" + HEAD + TAIL,
}
"""Two that no seam can be found in: one prints a reply twice, one counts the messages at its head."""


@pytest.fixture(scope="module", params=TEMPLATES)
def case(request, tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[str, Pair]]:
    folder = tmp_path_factory.mktemp(request.param)
    file = folder / "template.jinja"
    file.write_text(TEMPLATES[request.param])
    with FakeEngine() as engine:
        environment = {
            "TITO_MODEL": str(write_model(folder / "model")),
            "TITO_CHAT_TEMPLATE": str(file),
            "TITO_RENDERER": "template",
            "TITO_BACKEND": "sglang",
            "TITO_BACKEND_URL": engine.url,
        }
        with shared_server(django_db_blocker, environment) as url:
            yield request.param, (Client(url), engine)


def second_turn(pair: Pair, session: str) -> tuple[list[Any], Answer]:
    """The history of a second turn, and its answer."""
    client, engine = pair
    engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    history = [user("hello"), reply_of(client.chat(session, [user("hello")])), user("ok")]
    return history, client.chat(session, history)


def rendered(messages: list[Any]) -> list[int]:
    from sessions_app.api import runtime

    built = runtime.current().profiles._built["default"].renderer
    return built.render(messages, None).tolist()


def test_a_tree_gets_a_new_root_with_a_full_render(case: tuple[str, Pair]) -> None:
    cause, pair = case
    session = pair[0].create(history_policy="tree")
    history, answer = second_turn(pair, session)
    assert answer.status == 200
    assert (answer.headers["x-tito-attach"], answer.headers["x-tito-cause"]) == ("fork", cause)
    assert pair[1].bodies[-1]["input_ids"] == rendered(history)
    event = HistoryEvent.objects.get(session_id=session, cause=cause)
    assert (event.kind, event.node_seq) == ("fork", 1)
    assert event.detail


@pytest.mark.parametrize(("on_nonlinear", "attach"), [("reset", "reset"), ("passthrough", "passthrough")])
def test_linear_counts_it_as_nonlinear(case: tuple[str, Pair], on_nonlinear: str, attach: str) -> None:
    cause, pair = case
    session = pair[0].create(history_policy="linear", on_nonlinear=on_nonlinear)
    history, answer = second_turn(pair, session)
    assert answer.status == 200
    assert answer.headers["x-tito-attach"] == attach
    assert pair[1].bodies[-1]["input_ids"] == rendered(history)
    assert pair[0].get(session)["metadata"]["linear_healer"] == {
        "healed_turns": 0,
        "healed_prefix_tokens": 0,
        "nonlinear": 1,
        "close_unresolved": int(cause == "close_unresolved"),
    }


def test_linear_error_refuses_and_changes_nothing(case: tuple[str, Pair]) -> None:
    _, pair = case
    session = pair[0].create(history_policy="linear", on_nonlinear="error")
    _, answer = second_turn(pair, session)
    assert (answer.status, answer.code) == (409, "nonlinear_history")
    assert len(pair[0].get(session)["records"]) == 1
    pair[1].script()


def test_rollback_never_branches(case: tuple[str, Pair]) -> None:
    _, pair = case
    session = pair[0].create(history_policy="rollback")
    _, answer = second_turn(pair, session)
    assert (answer.status, answer.code) == (400, "template_error")
    assert len(pair[0].get(session)["records"]) == 1
