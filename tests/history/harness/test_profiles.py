"""Profiles: recorded clients stay one chain, tolerated differences are named, nothing else is let through."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from sessions_app.history.chain import prefix_keys
from sessions_app.history.harness.matcher import HarnessMatcher, tolerated
from sessions_app.history.harness.profiles import BUILT_IN_PROFILES, define_profile
from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.walk import PathNode, walk
from tests.history.messages import assistant, call, calling, pairs, system, user

STRICT = BUILT_IN_MATCHERS["strict"]
RECORDINGS = Path(__file__).parents[2] / "vectors" / "harness-wire"
each_profile = pytest.mark.parametrize("profile", BUILT_IN_PROFILES.values(), ids=BUILT_IN_PROFILES)


def reply_message(reply):
    calls = [call(each["arguments"], each["name"], id=each["id"]) for each in reply["tool_calls"]]
    return assistant(reply["text"], reasoning_content=reply["reasoning"], tool_calls=calls)


def attach_points(recording, matcher):
    """The parent that each recorded request finds, as a server would store the turns."""
    nodes, parents = [], []
    for turn in json.loads((RECORDINGS / f"{recording}.json").read_text())["requests"]:
        request = turn["body"]["messages"]
        found = walk(nodes, request, matcher)
        parents.append(found.seq)
        nodes.append(
            PathNode(len(nodes), found.seq, [*request[found.matched :], reply_message(turn["reply"])])
        )
    return parents


CHAIN = [None, 0, 1, 2]


def test_the_openai_sdk_needs_no_profile():
    assert attach_points("openai-sdk", STRICT) == CHAIN


def test_openai_agents_forks_each_turn_without_its_profile():
    assert attach_points("openai-agents", STRICT) == [None, None, None, None]


def test_openai_agents_is_one_chain_with_its_profile():
    assert attach_points("openai-agents", HarnessMatcher(STRICT, BUILT_IN_PROFILES["openai-agents"])) == CHAIN


def test_mini_swe_agent_branches_where_it_drops_a_reply():
    assert attach_points("mini-swe-agent", STRICT) == [None, 0, 1, 1]


def test_an_anthropic_replay_matches_what_the_engine_answered():
    matcher = HarnessMatcher(STRICT, BUILT_IN_PROFILES["anthropic"])
    stored = assistant(
        "I will call\n\na tool. ",
        reasoning_content="Let me think.",
        tool_calls=[call('{"days": 1.0,   "city":"Z\\u00fcrich 1"}', id="call_A1")],
    )
    replayed = assistant(
        [{"type": "text", "text": "I will call\n\na tool. "}],
        reasoning_content="Let me think.",
        tool_calls=[call('{"days": 1.0, "city": "Z\u00fcrich 1"}', id="toolu_A1")],
    )
    assert not STRICT.matches(stored, replayed)
    assert matcher.matches(stored, replayed)
    assert matcher.key(stored) == matcher.key(replayed)
    assert not matcher.matches(stored, {**replayed, "reasoning_content": "Let me guess."})


@pytest.mark.parametrize(
    ("sampled", "replayed"),
    [
        ('{"id":9007199254740993}', '{"id": 9007199254740992}'),
        ('{"id":12345678901234567890.5}', '{"id": 12345678901234567000}'),
        ('{"id":1,"id": 2}', '{"id":2}'),
    ],
)
def test_what_javascript_reads_of_arguments_is_what_was_told(sampled, replayed):
    for name in ("anthropic", "claude-code", "opencode", "qwen-code"):
        matcher = HarnessMatcher(STRICT, BUILT_IN_PROFILES[name])
        pair = calling(call(sampled)), calling(call(replayed))
        assert matcher.key(pair[0]) == matcher.key(pair[1])
        assert f"{name}/read-arguments" in tolerated(1, *pair, matcher).rules
    assert not BUILT_IN_MATCHERS["loose_tool_call"].matches(*pair)


def billing(checksum):
    header = f"x-anthropic-billing-header: cc_version=9.9.9; cch={checksum};"
    return system([{"type": "text", "text": header}, {"type": "text", "text": "You are a coder."}])


def test_a_changing_checksum_is_tolerated_and_named():
    matcher = HarnessMatcher(STRICT, BUILT_IN_PROFILES["claude-code"])
    rewrite = tolerated(0, billing("aaa111"), billing("bbb222"), matcher)
    assert matcher.matches(billing("aaa111"), billing("bbb222"))
    assert rewrite.rules == ("claude-code/billing-header",)
    assert (rewrite.difference.index, rewrite.difference.path) == (0, "content[0].text")
    assert rewrite.difference.offset == len("x-anthropic-billing-header: cc_version=9.9.9; cch=")


def test_only_the_tolerances_a_pair_needs_are_named():
    matcher = HarnessMatcher(STRICT, BUILT_IN_PROFILES["opencode"])
    stored = calling(call('{"a": 1.0}'), content="x", reasoning_content="r")
    respelled = calling(call('{"a":1}'), content="x", reasoning_content="r")
    assert tolerated(3, stored, respelled, matcher).rules == ("opencode/respelled-arguments",)
    both = calling(call('{"a":1}'), content=[{"type": "text", "text": "x"}])
    assert tolerated(3, stored, both, matcher).rules == (
        "opencode/text-parts",
        "opencode/dropped-reasoning",
        "opencode/respelled-arguments",
    )
    assert tolerated(3, stored, dict(stored), matcher) is None


def test_canonicalise_names_the_tolerances_that_had_something_to_do():
    canonical = BUILT_IN_PROFILES["claude-code"].canonicalise(billing("aaa111"))
    assert canonical.message == system("You are a coder.")
    assert canonical.rules == ("claude-code/billing-header", "claude-code/text-parts")
    assert BUILT_IN_PROFILES["claude-code"].canonicalise(user("a")).rules == ()


@each_profile
def test_a_profile_lets_no_other_message_through(profile):
    matcher = HarnessMatcher(STRICT, profile)
    assert not matcher.matches(user("a"), user("b"))
    assert not matcher.matches(assistant("a"), assistant("b"))
    assert not matcher.matches(calling(call('{"a":1}')), calling(call('{"a":2}')))
    assert not matcher.matches(calling(call(), call()), calling(call()))
    assert not matcher.matches(system("a"), user("a"))


@each_profile
@settings(max_examples=150, deadline=None)
@given(pair=pairs)
def test_keys_agree_with_the_predicate_behind_a_profile(profile, pair):
    for base in (*BUILT_IN_MATCHERS.values(), LINEAR_FORM):
        matcher = HarnessMatcher(base, profile)
        keys = matcher.key(pair[0]), matcher.key(pair[1])
        assert None in keys or (keys[0] == keys[1]) is matcher.matches(*pair)


def test_chained_keys_work_behind_a_profile():
    matcher = HarnessMatcher(STRICT, BUILT_IN_PROFILES["claude-code"])
    first, second = [billing("a1"), user("hello")], [billing("b2"), user("hello")]
    assert prefix_keys(matcher, first) == prefix_keys(matcher, second)


def test_a_profile_of_settings_names_tolerances_and_patterns():
    clock = {"name": "clock", "cut": r"It is \d\d:\d\d\.", "roles": ["system"]}
    profile = define_profile("mine", ["dropped-reasoning", clock])
    matcher = HarnessMatcher(STRICT, profile)
    assert matcher.matches(system("It is 10:00."), system("It is 10:01."))
    assert matcher.matches(assistant("a", reasoning_content="r"), assistant("a"))
    assert tolerated(0, system("It is 10:00."), system("It is 10:01."), matcher).rules == ("mine/clock",)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["sloppy"], "unknown tolerance 'sloppy'"),
        ([{"cut": "a"}], "a rule needs name, cut and roles"),
        ([3], "a rule needs name, cut and roles"),
        ([{"name": "n", "cut": "(", "roles": ["user"]}], "is no pattern"),
    ],
)
def test_a_bad_profile_of_settings_is_refused(rules, words):
    with pytest.raises(ValueError, match="harness profile 'mine'") as refusal:
        define_profile("mine", rules)
    assert words in str(refusal.value)
