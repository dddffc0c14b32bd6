"""Every exported record says how the history of its session went: healer counters, and causes of what was no
plain continuation."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.client import reply_of, user
from tests.exports.exporting import export, rows
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from trainer_export.shapes import SHAPES, TRACE_SHAPES, layout_of

Toy = Any


def edited(toy: Toy, **options: Any) -> str:
    """Two turns, then the second one's message edited, then its request sent again."""
    client, engine = toy
    session = client.create(**options)
    engine.script(*[Reply([100, 2], message=says("ab"))] * 4)
    first = [user("hello"), reply_of(client.chat(session, [user("hello")]))]
    for text in ("ok", "ab", "ab"):
        assert client.chat(session, [*first, user(text)]).status == 200
    return session


COUNTED = {
    "tree": ({"fork": {"message_edited": 1}, "retry": {"retry": 1}}, 3, 0),
    "rollback": ({"rollback": {"message_edited": 1, "retry": 1}}, 3, 0),
    "linear": ({"reset": {"message_edited": 1, "retry": 1}}, 1, 2),
}


@pytest.mark.parametrize("policy", COUNTED)
@pytest.mark.parametrize("shape", [*SHAPES, *TRACE_SHAPES])
def test_counters_and_causes_stand_in_every_record(toy: Toy, tmp_path: Path, shape: str, policy: str) -> None:
    causes, healed, nonlinear = COUNTED[policy]
    session = edited(toy, history_policy=policy)
    export(tmp_path, "--shape", shape, "--check", sessions=[session])
    made = [_parsed(row["metadata"]) for row in rows(tmp_path, layout_of(shape))]
    assert made
    for metadata in made:
        assert metadata["history_causes"] == causes
        counters = metadata["linear_healer"]
        assert list(counters) == ["healed_turns", "healed_prefix_tokens", "nonlinear", "close_unresolved"]
        assert (counters["healed_turns"], counters["nonlinear"]) == (healed, nonlinear)
        assert counters["healed_prefix_tokens"] > 0


def _parsed(metadata: Any) -> Any:
    return json.loads(metadata) if isinstance(metadata, str) else metadata


@pytest.mark.parametrize("format", ["jsonl", "safetensors"])
@pytest.mark.parametrize("shape", ["miles", "trl", "trajectory"])
def test_they_stand_there_in_every_format(toy: Toy, tmp_path: Path, shape: str, format: str) -> None:
    session = edited(toy)
    export(tmp_path, "--shape", shape, "--format", format, sessions=[session])
    made = rows(tmp_path, layout_of(shape), format)
    assert made
    for row in made:
        assert _parsed(row["metadata"])["history_causes"] == COUNTED["tree"][0]
        assert _parsed(row["metadata"])["linear_healer"]["healed_turns"] == 3


def test_a_driver_cannot_replace_them(toy: Toy, tmp_path: Path) -> None:
    session = edited(toy)
    planted = {"history_causes": {}, "linear_healer": 0, "x": 1}
    toy[0].call("POST", f"/sessions/{session}/finish", {"metadata": planted})
    for shape in SHAPES:
        export(tmp_path / shape, "--shape", shape, sessions=[session])
        for row in rows(tmp_path / shape, SHAPES[shape]):
            metadata = _parsed(row["metadata"])
            assert (metadata["history_causes"], metadata["x"]) == (COUNTED["tree"][0], 1)
            assert metadata["linear_healer"]["healed_turns"] == 3


def test_a_job_run_again_tells_the_history_as_it_was_frozen(toy: Toy, tmp_path: Path) -> None:
    from trainer_export.models import ExportJob

    client, engine = toy
    session = edited(toy)
    export(tmp_path / "once", "--shape", "transition", sessions=[session])
    job = ExportJob.objects.get(destination__contains=str(tmp_path / "once")).id.hex
    engine.script(Reply([100, 2], message=says("ab")))
    client.chat(session, [user("another")])
    export(tmp_path / "again", "--rerun", job)
    told = [
        [_parsed(row["metadata"]) for row in rows(tmp_path / at, layout_of("transition"))]
        for at in ("once", "again")
    ]
    assert told[0] == told[1]
