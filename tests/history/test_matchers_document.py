"""docs/matchers.md: its template matcher works, and every matcher, tolerance and profile is described."""

import re
from pathlib import Path

from sessions_app.history.harness.profiles import BUILT_IN_PROFILES
from sessions_app.history.harness.tolerances import TOLERANCES
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS, resolve_matcher
from tests.history.messages import user

DOCUMENT = Path(__file__).parents[2] / "docs" / "matchers.md"


def test_the_template_of_a_custom_matcher_works(tmp_path, monkeypatch):
    code = re.search(r"```python\n# my_package/matching.py\n(.*?)```", DOCUMENT.read_text(), re.S)[1]
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "matching.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    matcher = resolve_matcher("my_package.matching.same")
    result = {"role": "tool", "content": "42\n"}
    assert matcher.matches(result, {"role": "tool", "content": "42"})
    assert not matcher.matches(result, {"role": "tool", "content": "43"})
    assert not matcher.matches(user("a\n"), user("a"))


def test_every_matcher_tolerance_and_profile_is_described():
    rows = re.findall(r"^\| (.*?) \|", DOCUMENT.read_text(), re.M)
    described = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert described == {*BUILT_IN_MATCHERS, *TOLERANCES, *BUILT_IN_PROFILES}


def test_the_tolerances_of_each_profile_are_those_described():
    text = DOCUMENT.read_text()
    for name in ("anthropic", "openai-agents", "opencode", "pydantic-ai", "codex"):
        row = re.search(rf"^\| `{name}` \| (.*?) \|", text, re.M)[1]
        assert set(re.findall(r"`([\w-]+)`", row)) == {
            each.name for each in BUILT_IN_PROFILES[name].tolerances
        }
