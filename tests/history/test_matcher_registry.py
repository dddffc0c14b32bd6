"""Selectors: built-in names, dotted paths, the fixed words of refusals; verdicts of custom matchers."""

import json
from pathlib import Path

import pytest

from sessions_app.errors import MatcherContract, MatcherRaised
from sessions_app.history.matchers.custom import CustomMatcher
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS, resolve_matcher
from tests.history.messages import user

SELECTORS = Path(__file__).parent.parent / "vectors" / "history" / "matcher_selectors.jsonl"
ROWS = [json.loads(line) for line in SELECTORS.read_text().splitlines()]
HOOKS = "tests.history.matcher_hooks"
CHOICES = (
    "use one of strict, loose_tool_call, role_content_only, "
    "or a dotted import path such as package.module.matcher"
)
ASYNC = "resolved to an async function; a synchronous one is required"


def refusal_of(selector):
    with pytest.raises(ValueError, match="--session-message-matcher") as refusal:
        resolve_matcher(selector)
    return str(refusal.value)


@pytest.fixture
def vector_hooks(tmp_path, monkeypatch):
    """The module that the recorded selectors name."""
    (tmp_path / "vector_hooks.py").write_text(f"from {HOOKS} import asynchronous as async_hook\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("vector_hooks")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["selector"]))
def test_a_recorded_selector_is_refused_in_the_recorded_words(row):
    assert refusal_of(row["selector"]) == row["message"]


@pytest.mark.parametrize("selector", ["", None, 3, "Strict", "strict ", "linear_form", [], {"a": 1}])
def test_a_selector_without_a_dot_is_invalid(selector):
    assert refusal_of(selector) == f"invalid --session-message-matcher {selector!r}; {CHOICES}"


@pytest.mark.parametrize(
    ("selector", "cause"),
    [
        (f"{HOOKS}.NOT_CALLABLE", f"load_function('{HOOKS}.NOT_CALLABLE') did not resolve to a callable"),
        (f"{HOOKS}.absent", f"module '{HOOKS}' has no attribute 'absent'"),
        (f"{HOOKS}.asynchronous_object", f"load_function('{HOOKS}.asynchronous_object') {ASYNC}"),
        (".", "Empty module name"),
        ("missing_package.f", "No module named 'missing_package'"),
    ],
)
def test_a_path_that_leads_to_no_function_is_refused_with_its_cause(selector, cause):
    assert (
        refusal_of(selector)
        == f"failed to resolve --session-message-matcher {selector!r}; {CHOICES}: {cause}"
    )


@pytest.mark.parametrize("name", ["exact", "strict", "loose_tool_call", "role_content_only"])
def test_a_built_in_is_found_by_name(name):
    assert resolve_matcher(name).name == name


def test_built_ins_stand_in_the_order_from_tight_to_loose():
    assert list(BUILT_IN_MATCHERS) == ["exact", "strict", "loose_tool_call", "role_content_only"]


def test_a_custom_matcher_decides_and_has_no_keys():
    matcher = resolve_matcher(f"{HOOKS}.ignore_case")
    assert matcher.name == f"{HOOKS}.ignore_case"
    assert matcher.matches(user("Hello"), user("hello")) is True
    assert matcher.matches(user("Hello"), user("world")) is False
    assert matcher.key(user("hello")) is None


def test_a_matcher_that_raises_is_an_error_of_its_own():
    with pytest.raises(MatcherRaised) as error:
        resolve_matcher(f"{HOOKS}.raises").matches(user("a"), user("a"))
    assert str(error.value) == "session message matcher raised an exception"
    assert isinstance(error.value.__cause__, RuntimeError)


@pytest.mark.parametrize(("hook", "typename"), [("returns_one", "int"), ("returns_nothing", "NoneType")])
def test_a_verdict_that_is_no_bool_is_an_error_of_its_own(hook, typename):
    with pytest.raises(MatcherContract) as error:
        resolve_matcher(f"{HOOKS}.{hook}").matches(user("a"), user("a"))
    assert str(error.value) == f"session message matcher must return bool, got {typename}"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_of_the_process_is_not_swallowed(stop):
    def stopping(stored, replayed):
        raise stop

    with pytest.raises(stop):
        CustomMatcher("a.b", stopping).matches(user("a"), user("a"))
