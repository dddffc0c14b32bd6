"""Messages that may come and go: a profile that lets them pass attaches as if they were not there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.history.chain import prefix_keys
from sessions_app.history.harness.matcher import HarnessMatcher, passed
from sessions_app.history.harness.profiles import BUILT_IN_PROFILES, define_profile
from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.passing import aligned, counted, passing, steady
from sessions_app.history.walk import walk
from tests.history.forest_model import ForestModel
from tests.history.messages import assistant, user
from tests.history.test_walk import forests_and_requests

STRICT = BUILT_IN_MATCHERS["strict"]
CLAUDE_CODE = HarnessMatcher(STRICT, BUILT_IN_PROFILES["claude-code"])
MATCHERS = [HarnessMatcher(base, CLAUDE_CODE.profile) for base in (*BUILT_IN_MATCHERS.values(), LINEAR_FORM)]
ONE, OTHER = (user(f"<system-reminder>\n{text}\n</system-reminder>") for text in ("plan", "todo"))
TWICE = user(f"{ONE['content']}\n{OTHER['content']}\n")
PARTS = user([{"type": "text", "text": ONE["content"]}])
reminders = st.lists(st.sampled_from([ONE, OTHER, TWICE, PARTS]), max_size=2)


@st.composite
def sprinkled(draw, messages):
    """The same messages with reminders between them; none behind the last."""
    return [each for message in messages for each in (*draw(reminders), message)]


@pytest.mark.parametrize("matcher", MATCHERS, ids=lambda matcher: matcher.name)
@settings(max_examples=200, deadline=None)
@given(data=st.data(), drawn=forests_and_requests())
def test_reminders_change_no_attach_point_by_walk_or_by_keys(matcher, data, drawn):
    nodes, request = drawn
    plain, sprinkled_forest = ForestModel(matcher), ForestModel(matcher)
    for parent, delta in nodes:
        told = [*delta, assistant("z")]  # a node ends with its reply
        plain.add(parent, told)
        sprinkled_forest.add(parent, data.draw(sprinkled(told)))
    request = [each for message in request for each in (message, assistant("z"))]
    again = data.draw(sprinkled(request))
    assert plain.prefix_keys == sprinkled_forest.prefix_keys
    found = walk(sprinkled_forest.nodes, again, matcher)
    assert found.seq == walk(plain.nodes, request, matcher).seq
    if found.seq is not None:
        path = sprinkled_forest.paths[found.seq]
        assert len(counted(again[: found.matched], matcher)) == len(counted(path, matcher))
        pairs = aligned(path, again[: found.matched], matcher)
        assert [ours for ours, _ in pairs if ours is not None] == list(range(len(path)))
        assert [theirs for _, theirs in pairs if theirs is not None] == list(range(found.matched))
        both = [(ours, theirs) for ours, theirs in pairs if None not in (ours, theirs)]
        assert all(matcher.matches(path[ours], again[theirs]) for ours, theirs in both)


@pytest.mark.parametrize("name", sorted(BUILT_IN_PROFILES.keys() - {"claude-code"}))
def test_nothing_passes_another_profile(name):
    assert passing(HarnessMatcher(STRICT, BUILT_IN_PROFILES[name])) is None


def test_nothing_passes_without_a_profile():
    assert passing(STRICT) is None
    assert list(steady([ONE, user("a")], STRICT)) == [0, 1]
    assert len(set(prefix_keys(STRICT, [user("a"), ONE]))) == 2


@pytest.mark.parametrize(
    "message",
    [
        user(f"{ONE['content']} and go on"),
        user([{"type": "text", "text": ONE["content"]}, {"type": "image"}]),
        user("<system-reminder>unclosed"),
        user(""),
        user(None),
        assistant(ONE["content"]),
        {"role": "system", "content": ONE["content"]},
        {"role": "tool", "tool_call_id": "c", "content": ONE["content"]},
        {**ONE, "tool_calls": [{}]},
    ],
)
def test_only_a_users_message_of_reminders_passes(message):
    assert not CLAUDE_CODE.profile.passes(message)
    assert CLAUDE_CODE.key(message) != CLAUDE_CODE.key(ONE)


def test_messages_that_pass_are_the_same_to_each_other():
    assert CLAUDE_CODE.matches(ONE, TWICE)
    assert not CLAUDE_CODE.matches(ONE, user("a"))
    assert CLAUDE_CODE.key(ONE) == CLAUDE_CODE.key(PARTS) == b""


def test_what_came_or_went_is_told_with_its_rule():
    gone = passed(3, ONE, None, CLAUDE_CODE)
    assert gone.rules == ("claude-code/system-reminders",)
    assert (gone.difference.index, gone.difference.path) == (3, "messages")
    assert "plan" in gone.difference.stored
    assert gone.difference.replayed is None
    come = passed(4, None, OTHER, CLAUDE_CODE)
    assert (come.difference.stored, "todo" in come.difference.replayed) == (None, True)


def test_a_profile_of_settings_may_let_messages_pass():
    nudge = {"name": "nudge", "cut": r"\[nudge: .*?\]\s*", "roles": ["user"], "passes": True}
    matcher = HarnessMatcher(STRICT, define_profile("mine", [nudge]))
    assert matcher.key(user("[nudge: be quick]")) == b""
    assert matcher.key(user("[nudge: be quick] hello")) == matcher.key(user("hello"))
    without = define_profile("mine", [{**nudge, "passes": False}])
    assert not HarnessMatcher(STRICT, without).profile.lets_pass
