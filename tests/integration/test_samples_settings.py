"""Settings that samples depend on, each with a server of its own."""

import asyncio
import base64
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from tests.client import reply_of, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server
from tests.integration.test_samples import forked, samples, truncated
from tito_project.configuration import read
from tito_project.env import Environment
from trainer_export.samples.codec import decode_samples


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


def packed(rows: int, layers: int, k: int, start: int = 0) -> dict[str, str]:
    """Replay rows of which each value is its place."""
    values = np.arange(start * layers * k, (start + rows) * layers * k, dtype="<i4")
    return {"routed_experts": base64.b64encode(values.tobytes()).decode()}


@pytest.mark.parametrize("status", ["\ud800", "a\x00"])
def test_a_status_that_no_column_can_hold_is_passed_on_all_the_same(tmp_path: Path, status: str) -> None:
    hook = "tests.samples.hook_functions.odd_status"
    with toy_server(tmp_path, TITO_SAMPLE_POSTPROCESSOR=hook) as (client, engine):
        rows = samples(client, forked(client, engine), {"metadata": {"status": status}})
    assert [row["status"] for row in rows] == [status, status]


def test_replay_rows_of_every_turn_reach_the_trainer(tmp_path: Path) -> None:
    with toy_server(tmp_path, TITO_ROUTING_REPLAY="1", TITO_R3_LAYERS="2") as (client, engine):
        engine.script(
            Reply([1097, 1098, 2], message=says("ab"), meta=packed(11, 2, 3)),
            Reply([102, 2], message=says("ok"), meta=packed(23, 2, 3)),
        )
        session = client.create()
        first = reply_of(client.chat(session, [user("hello")]))
        client.chat(session, [user("hello"), first, user("ok")])
        assert engine.bodies[0]["return_routed_experts"] is True
        blob = client.call("POST", f"/sessions/{session}/samples").body
        record = client.get(session)["records"][0]["response"]["choices"][0]["meta_info"]
    [sample] = decode_samples(blob).samples
    assert len(sample["tokens"]) == 24
    assert sample["rollout_routed_experts"].shape == (23, 2, 3)
    assert sample["rollout_routed_experts"].ravel().tolist() == list(range(23 * 6))
    assert record["routed_experts"] == packed(11, 2, 3)["routed_experts"], "GET gives them back, too"


def test_additional_rows_are_put_together(tmp_path: Path) -> None:
    settings = {"TITO_ROUTING_REPLAY": "1", "TITO_ADDITION_R3": "1", "TITO_R3_LAYERS": "2"}
    with toy_server(tmp_path, **settings) as (client, engine):
        engine.script(
            Reply([1097, 1098, 2], message=says("ab"), meta=packed(11, 2, 3)),
            Reply([102, 2], message=says("ok"), meta=packed(12, 2, 3, start=11)),
        )
        session = client.create()
        first = reply_of(client.chat(session, [user("hello")]))
        client.chat(session, [user("hello"), first, user("ok")])
        assert [body["routed_experts_start_len"] for body in engine.bodies] == [0, 11]
        blob = client.call("POST", f"/sessions/{session}/samples").body
    [sample] = decode_samples(blob).samples
    assert sample["rollout_routed_experts"].ravel().tolist() == list(range(23 * 6))


def test_rows_of_the_wrong_size_are_told_in_the_words_of_numpy(tmp_path: Path) -> None:
    with toy_server(tmp_path, TITO_ROUTING_REPLAY="1", TITO_R3_LAYERS="2") as (client, engine):
        engine.script(Reply([1097, 1098, 2], message=says("ab"), meta=packed(10, 2, 3)))
        session = client.create()
        client.chat(session, [user("hello")])
        answer = client.call("POST", f"/sessions/{session}/samples")
    assert (answer.status, answer.code) == (422, "samples_failed")
    assert b"cannot reshape array of size 60" in answer.body
