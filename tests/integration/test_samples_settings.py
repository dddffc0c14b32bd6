"""Settings that samples depend on, each with a server of its own."""

import asyncio
from pathlib import Path

import pytest
from django.conf import settings

from tests.client import user
from tests.integration.test_cases import says, toy_server
from tests.integration.test_samples import forked, samples, truncated
from tito_project.configuration import read
from tito_project.env import Environment


def test_keep_all_keeps_the_cut_turn(tmp_path: Path) -> None:
    """CASE-14."""
    with toy_server(tmp_path, TITO_SAMPLE_PICKER="keep_all") as pair:
        rows = samples(pair[0], truncated(*pair))
    assert [row["status"] for row in rows] == ["truncated", "completed"]


def test_debug_messages_stand_in_the_last_sample_as_they_were_sent(tmp_path: Path) -> None:
    with toy_server(tmp_path, TITO_DEBUG_MESSAGES="1") as (client, engine):
        rows = samples(client, forked(client, engine))
    assert rows[1]["metadata"]["messages"] == [user("hello"), says("ab"), user("ab"), says("hello")]


def test_a_dotted_path_of_the_settings_is_called(tmp_path: Path) -> None:
    hook = "tests.samples.hook_functions.newest_first"
    with toy_server(tmp_path, TITO_SAMPLE_PICKER=hook) as pair:
        rows = samples(pair[0], forked(*pair))
    assert [row["metadata"]["leaf"]["node_id"] for row in rows] == [2, 1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"TITO_SAMPLE_PICKER": "no_such_picker"}, "invalid TITO_SAMPLE_PICKER 'no_such_picker'"),
        ({"TITO_SAMPLE_PICKER": "no.such.module"}, "No module named 'no'"),
        ({"TITO_SAMPLE_POSTPROCESSOR": "json.nothing"}, "has no attribute 'nothing'"),
        ({"TITO_SAMPLE_POSTPROCESSOR": "asyncio.sleep"}, "async function"),
        ({"TITO_SAMPLE_POSTPROCESSOR": "agent_match:("}, "agent_match pattern"),
    ],
)
def test_hooks_that_do_not_resolve_stop_the_start(values: dict[str, str], said: str) -> None:
    from sessions_app.api import runtime

    configuration = read(Environment({"TITO_HOME": str(settings.TITO.home), **values}))
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        asyncio.run(runtime.start("host=nowhere.invalid", lambda name: None, configuration))
