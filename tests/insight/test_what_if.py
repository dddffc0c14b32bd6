"""Replays: the same world gives the same forest, another world says what would differ, and nothing is
written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.conf import settings

from sessions_app.history.harness.profiles import BUILT_IN_PROFILES
from sessions_app.history.matchers.registry import resolve_matcher
from sessions_app.insight.what_if.asked import Asked, load_requests
from sessions_app.insight.what_if.renders import Rendered, rows_of_rerendering
from sessions_app.insight.what_if.running import World, own_settings, run
from sessions_app.insight.what_if.setup import Changes, Setup, setup_of
from sessions_app.insight.what_if.simulate import replay
from sessions_app.models import HistoryEvent, Message, Node, Record, Session
from tests.admin.seeding import Seeds

WORLD = World(BUILT_IN_PROFILES, max_rollback=1)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def asked(
    seq: int, messages: list[Any], reply: Any, identity: bytes = b"h", cause: str | None = None
) -> Asked:
    return Asked(
        seq=seq, parent=None, kind="root", cause=cause, identity=identity, tools=None, template_kwargs="{}",
        template_fingerprint="", tokenizer_fingerprint="", prompt_tokens=10 * len(messages),
        total_tokens=10 * len(messages) + 5, reused_tokens=0, completion=np.arange(5, dtype=np.int32),
        messages=messages, reply=reply,
    )  # fmt: skip


def setup(policy: str = "tree", matcher: str = "strict", **more: Any) -> Setup:
    values: dict[str, Any] = {"on_nonlinear": "reset", "max_rollback": 1, "same_renderer": True} | more
    return Setup(policy=policy, matcher=resolve_matcher(matcher), **values)


@pytest.mark.parametrize("name", ["plain", "busy", "rolled", "reset", "odd", "failed", "empty"])
def test_the_same_world_gives_the_same_forest(seeds: Seeds, name: str) -> None:
    session = Session.objects.get(pk=getattr(seeds, name))
    own = own_settings(session, settings.TITO.max_rollback)
    placed = replay(load_requests(session.id).asked, setup_of(own, Changes(), BUILT_IN_PROFILES)).placed
    stored = Node.objects.filter(session=session).order_by("seq")
    assert [(one.seq, one.parent, str(one.kind)) for one in placed] == list(
        stored.values_list("seq", "parent_seq", "attach_kind")
    )
    assert [str(one.cause) if one.cause else None for one in placed] == list(
        stored.values_list("cause", flat=True)
    )


def test_requests_are_those_that_the_clients_sent(seeds: Seeds) -> None:
    requests = load_requests(Session.objects.get(pk=seeds.busy).id).asked
    respelled = next(one for one in requests if one.cause == "tool_arguments_spelling")
    assert respelled.messages[2]["tool_calls"][0]["function"]["arguments"] == '{"b":3,"a":2}'


def test_a_looser_matcher_saves_the_fork_and_names_the_pair(seeds: Seeds) -> None:
    report = run([Session.objects.get(pk=seeds.busy).id], Changes(matcher="loose_tool_call"), WORLD,
                 lambda _: None, lambda *_: None)  # fmt: skip
    assert report.forks_saved == 0
    (result,) = report.results
    change = next(one for one in result.changes if one.before_cause == "tool_arguments_spelling")
    assert (change.before_parent, change.after_parent, change.after_kind) == (None, 0, "retry")
    assert report.tokens_saved > 0
    (pair,) = result.pairs
    assert pair.field == "tool_calls[0].function.arguments"
    assert (pair.stored, pair.replayed) == ('"{\\"a\\": 2, \\"b\\": 3}"', '"{\\"b\\":3,\\"a\\":2}"')


def test_a_fork_that_continues_is_saved() -> None:
    reply = said(
        "a", tool_calls=[{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    )
    again = said(
        "a", tool_calls=[{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
    )
    requests = [asked(0, [user("x")], reply), asked(1, [user("x"), again, user("y")], said("b"))]
    assert [str(one.kind) for one in replay(requests, setup()).placed] == ["root", "fork"]
    assert [str(one.kind) for one in replay(requests, setup(matcher="loose_tool_call")).placed] == [
        "root",
        "append",
    ]


def test_rollback_refuses_what_goes_back_too_far() -> None:
    history: list[Any] = [user("1")]
    requests = []
    for seq in range(3):
        requests.append(asked(seq, list(history), said(str(seq))))
        history += [said(str(seq)), user("more")]
    requests.append(asked(3, [user("1"), said("0"), user("else")], said("3")))
    placed = replay(requests, setup("rollback")).placed
    assert placed[-1].refused == "rollback_too_deep"
    assert str(replay(requests, setup("rollback", max_rollback=2)).placed[-1].kind) == "rollback"
    assert str(replay(requests, setup("linear")).placed[-1].kind) == "reset"
    assert replay(requests, setup("linear", on_nonlinear="error")).placed[-1].refused == "nonlinear_history"
    assert str(replay(requests, setup("linear", on_nonlinear="passthrough")).placed[-1].kind) == "passthrough"


def test_another_head_is_never_continued() -> None:
    requests = [
        asked(0, [user("x")], said("a")),
        asked(1, [user("x"), said("a"), user("y")], said("b"), b"other"),
    ]
    assert replay(requests, setup()).placed[1].parent is None
    assert replay(requests, setup("rollback")).placed[1].parent == 0


def test_messages_without_a_key_are_walked_to() -> None:
    loud = [user("X"), said("A"), user("y")]
    requests = [asked(0, [user("x")], said("a")), asked(1, loud, said("b")), asked(2, [user("X")], said("c"))]
    placed = replay(requests, setup(matcher="tests.history.matcher_hooks.ignore_case")).placed
    assert [(one.parent, str(one.kind)) for one in placed] == [(None, "root"), (0, "append"), (None, "fork")]
    assert [(one.parent, str(one.kind)) for one in replay(requests, setup()).placed][1] == (None, "fork")


def test_rows_of_rerendering_split_where_ids_do_not_go_on() -> None:
    requests = [asked(0, [user("x")], said("a")), asked(1, [user("x"), said("a"), user("y")], said("b"))]
    placed = replay(requests, setup()).placed
    prompt = np.array([1, 2], dtype=np.int32)
    going_on = np.concatenate([prompt, requests[0].completion, np.array([9], dtype=np.int32)])
    drifted = going_on.copy()
    drifted[3] = 77
    for second, rows in ((going_on, 1), (drifted, 2)):
        rendered = {0: Rendered(prompt, 7), 1: Rendered(second, 12)}
        assert rows_of_rerendering(requests, placed, rendered) == rows


@pytest.mark.parametrize("changes", [Changes(matcher="nope"), Changes(harness="nope")])
def test_names_that_do_not_resolve_are_refused(changes: Changes) -> None:
    with pytest.raises(ValueError, match="nope"):
        run([], changes, WORLD, lambda _: None, lambda *_: None)


def counts() -> list[int]:
    return [model.objects.count() for model in (Session, Node, Message, Record, HistoryEvent)]


def test_nothing_changes_in_the_original(seeds: Seeds, django_assert_num_queries: Callable[..., Any]) -> None:
    before = counts(), list(Session.objects.order_by("id").values())
    run([Session.objects.get(pk=seeds.busy).id], Changes(policy="linear"), WORLD, lambda _: None, print)
    assert (counts(), list(Session.objects.order_by("id").values())) == before
