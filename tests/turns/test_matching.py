"""Matchers and harness profiles that settings name and that there are not."""

from typing import Any, cast

import pytest

from sessions_app.store.pool import Database
from sessions_app.turns.matching import configured_matching
from tito_project.configuration import read
from tito_project.env import Environment


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("TITO_MESSAGE_MATCHER", "no.such", "failed to resolve"),
        ("TITO_MESSAGE_MATCHER", "lose", "invalid"),
        ("TITO_HARNESS_PROFILES", '{"mine": ["no-such-tolerance"]}', "unknown tolerance"),
    ],
)
def test_what_there_is_not_is_refused_with_the_name_of_its_setting(
    tmp_path: Any, setting: str, value: str, said: str
) -> None:
    configuration = read(Environment({"TITO_HOME": str(tmp_path), setting: value}))
    with pytest.raises(ValueError, match=f"^{setting}: .*{said}"):
        configured_matching(cast(Database, None), configuration)
