"""The template matcher in docs/matchers.md works as printed."""

import re
from pathlib import Path

from sessions_app.history.matchers.registry import resolve_matcher
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
