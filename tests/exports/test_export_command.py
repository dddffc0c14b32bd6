"""`manage.py export_samples`: formats, shapes, filters, reports, and what cannot be done."""

import hashlib
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.client import reply_of, user
from tests.exports.exporting import export, linear, rows, shards, visible
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from tests.integration.test_samples import forked, truncated
from trainer_export.samples.codec import decode_samples
from trainer_export.samples.validate import problems
from trainer_export.shapes import SHAPES
from trainer_export.shapes.checking import problems_of
from trainer_export.shapes.native import document


@pytest.fixture(autouse=True)
def _fresh_renderers() -> None:
    """Servers of other modules had other tokenizers."""
    from trainer_export.renderers import profile_renderer

    profile_renderer.cache_clear()


def test_a_shared_completion_is_trained_once(toy, tmp_path: Path) -> None:
    """CASE-13."""
    report = export(tmp_path, sessions=[forked(*toy)])
    first, second = rows(tmp_path)
    assert (first["trained"], second["trained"]) == (5, 2)
    assert second["masked"] == {"trained_elsewhere": 3}
    assert report["rows"] == 2
    assert report["trained_tokens"] == report["generated_tokens"] == 7
    assert report["proof"] == {
        "proven": 7, "unproven": {"context": 0, "logprob": 0}, "unsampled": 0, "adds_up": True,
    }  # fmt: skip


def test_a_rollout_counts_once_however_many_rows_it_became(toy, tmp_path: Path) -> None:
    """CASE-12."""
    client, engine = toy
    group = uuid.uuid4().hex
    a = forked(client, engine, group_id=group, group_size=2, rollout_id="A" + group)
    b = linear(client, engine, group_id=group, rollout_id="B" + group)
    for session, value in ((a, 1.0), (b, 0.5)):
        client.call("POST", f"/sessions/{session}/finish", {"reward": value})
    export(tmp_path, "--filters", json.dumps({"groups": [group]}))
    made = rows(tmp_path)
    assert len(made) == 3
    assert [(row["leaf_index"], row["leaf_count"], row["rollout_weight"]) for row in made] == [
        (0, 2, 0.5), (1, 2, 0.5), (0, 1, 1.0),
    ]  # fmt: skip
    weights = sum(row["rollout_weight"] for row in made)
    assert sum(row["rollout_weight"] * row["reward"] for row in made) / weights == 0.75
    assert {row["group_id"] for row in made} == {group}


def test_attempts_of_one_rollout_share_its_weight(toy, tmp_path: Path) -> None:
    client, engine = toy
    rollout = uuid.uuid4().hex
    for attempt in ("1", "2"):
        linear(client, engine, rollout_id=rollout, attempt_id=attempt)
    export(tmp_path, "--filters", json.dumps({"rollouts": rollout}))
    assert [row["rollout_weight"] for row in rows(tmp_path)] == [0.5, 0.5]


def test_superseded_and_cut_turns(toy, tmp_path: Path) -> None:
    """CASE-14, CASE-01."""
    session = truncated(*toy)
    report = export(tmp_path / "default", sessions=[session])
    assert [row["status"] for row in rows(tmp_path / "default")] == ["completed"]
    assert report["dropped_leaves"] == report["dropped_nodes"] == {"superseded": 1}
    assert report["masked"] == {"superseded": 2}
    export(tmp_path / "all", "--picker", "keep_all", sessions=[session])
    assert [row["status"] for row in rows(tmp_path / "all")] == ["truncated", "completed"]


@pytest.mark.parametrize("shape", ["native", "miles", "verl", "trl"])
@pytest.mark.parametrize("format", ["parquet", "jsonl", "safetensors"])
def test_every_shape_in_every_format_is_what_it_says(toy, tmp_path: Path, shape: str, format: str) -> None:
    client, engine = toy
    session = forked(client, engine)
    linear_one = linear(client, engine, history_policy="linear")
    rolled = linear(client, engine, history_policy="rollback")
    client.call("POST", f"/sessions/{session}/finish", {"metadata": {"reward": {"a": 1}, "x": "\ud800"}})
    client.call("POST", f"/sessions/{rolled}/rewards", {"value": 2})
    chosen = [session, linear_one, rolled]
    export(tmp_path, "--format", format, "--shape", shape, "--check", sessions=chosen)
    made = rows(tmp_path, SHAPES[shape], format)
    assert len(made) == 4
    assert [problems_of(SHAPES[shape], row) for row in made] == [[]] * 4
    assert [row["session_id"] for row in made] == [session, session, linear_one, rolled]


def test_formats_hold_the_same_rows(toy, tmp_path: Path) -> None:
    session = forked(*toy)
    documents = []
    for format in ("parquet", "jsonl", "safetensors"):
        export(tmp_path / format, "--format", format, sessions=[session])
        documents.append([document(row) for row in rows(tmp_path / format, format=format)])
    assert documents[0] == documents[1] == documents[2]
    lines = [json.loads(line) for line in shards(tmp_path / "jsonl", "jsonl")[0].read_text().splitlines()]
    assert [problems(line) for line in lines] == [[], []]
    assert lines[0]["tokens"] == documents[0][0]["tokens"]


def test_safetensors_of_miles_are_the_reference_codec(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = forked(client, engine)
    export(tmp_path, "--format", "safetensors", "--shape", "miles", sessions=[session])
    decoded = decode_samples(shards(tmp_path, "safetensors")[0].read_bytes())
    wire = client.call("POST", f"/sessions/{session}/samples", {}, {"accept": "application/json"}).json
    for ours, theirs in zip(decoded.samples, wire["samples"], strict=True):
        for name in ("tokens", "loss_mask", "rollout_log_probs"):
            assert ours[name].tolist() == theirs[name]
        for name in ("response", "response_length", "status", "weight_versions", "prefix_cache_info"):
            assert ours[name] == theirs[name]
        assert ours["metadata"]["lifecycle"] == theirs["metadata"]["lifecycle"]


def test_two_runs_are_equal_to_the_byte_whatever_happened_in_between(toy, tmp_path: Path) -> None:
    from trainer_export.models import ExportJob

    client, engine = toy
    sessions = [linear(client, engine), forked(client, engine), linear(client, engine, turns=1)]
    client.call("POST", f"/sessions/{sessions[0]}/rewards", {"value": 1})
    export(tmp_path / "one", "--shard-tokens", "20", sessions=sessions)
    job = ExportJob.objects.get(destination=str(tmp_path / "one"))
    messages = [user("hello"), says("ab"), user("ok"), says("ab"), user("ok")]
    engine.script(Reply([102, 2], message=says("ok")))
    assert client.chat(sessions[0], messages).headers["x-tito-attach"] == "append"
    client.call("POST", f"/sessions/{sessions[0]}/rewards", {"value": 5})
    client.call("POST", f"/sessions/{sessions[1]}/finish", {"reward": 5, "metadata": {"late": True}})
    export(tmp_path / "two", "--rerun", job.id.hex)
    assert visible(tmp_path / "one") == visible(tmp_path / "two")
    assert len(shards(tmp_path / "one")) == 3
    for name in visible(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    export(tmp_path / "three", "--shard-tokens", "20", sessions=sessions)
    assert [row["reward"] for row in rows(tmp_path / "three")] == [6.0, 5.0, 5.0, None]


def test_the_manifest_names_every_shard_with_its_digest(toy, tmp_path: Path) -> None:
    client, engine = toy
    report = export(tmp_path, "--shard-tokens", "1", sessions=[linear(client, engine) for _ in range(2)])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [shard["name"] for shard in manifest["shards"]] == [file.name for file in shards(tmp_path)]
    for shard, file in zip(manifest["shards"], shards(tmp_path), strict=True):
        assert shard["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert (shard["bytes"], shard["rows"], shard["sessions"]) == (file.stat().st_size, 1, 1)
    assert manifest["report"] == report
    assert report["sessions"] == report["rows"] == 2


def test_a_group_never_straddles_shards(toy, tmp_path: Path) -> None:
    client, engine = toy
    groups = [uuid.uuid4().hex for _ in range(2)]
    for at in range(4):
        linear(client, engine, group_id=groups[at % 2], rollout_id=uuid.uuid4().hex)
    export(tmp_path, "--shard-tokens", "1", "--filters", json.dumps({"groups": groups}))
    held = [{row["group_id"] for row in rows_of} for rows_of in map(_of, shards(tmp_path))]
    assert held == [{groups[0]}, {groups[1]}]


def _of(file: Path) -> list[Any]:
    from trainer_export.writers.reading import read_rows

    return read_rows("parquet", file, SHAPES["native"])


def test_an_empty_export_says_why(toy, tmp_path: Path) -> None:
    client, engine = toy
    nobody = export(tmp_path / "a", sessions=["0" * 32])
    assert nobody["empty_reason"] == "no session passes the filters"
    assert visible(tmp_path / "a") == ["manifest.json"]
    turnless = export(tmp_path / "b", sessions=[client.create()])
    assert turnless["empty_reason"] == "no session gave a row (no_records: 1)"
    assert turnless["dropped_sessions"] == {"no_records": 1}
    short = export(tmp_path / "c", "--max-seq-len", "3", sessions=[linear(client, engine)])
    assert short["empty_reason"] == "no session gave a row (max_seq_len: 1)"
    assert short["masked"] == {"max_seq_len": 4}


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        ({"labels": {"split": "train"}}, "ab"),
        ({"labels": {"split": "train", "n": "1"}}, "a"),
        ({"harness": "mine"}, "b"),
        ({"finished": True}, "ac"),
        ({"finished": False}, "b"),
        ({"session_status": ["open", "finished"]}, "ab"),
        ({"finish_status": "solved"}, "a"),
        ({"reward": True}, "a"),
        ({"reward": False}, "bc"),
        ({"status": "completed"}, "abc"),
        ({"status": ["truncated"]}, ""),
        ({"since": "2000-01-01"}, "abc"),
        ({"until": "2000-01-01T00:00:00Z"}, ""),
        ({"finished_until": "2100-01-01"}, "ac"),
        ({"min_weight_version": 7}, "abc"),
        ({"min_weight_version": 8}, ""),
        ({"max_weight_version": 6}, ""),
        ({"profile": "default"}, "abc"),
        ({"profile": "other"}, ""),
        ({"agent": ["nobody"]}, ""),
    ],
)
def test_filters(toy, tmp_path: Path, filters: dict[str, Any], taken: str) -> None:
    client, engine = toy
    mark = uuid.uuid4().hex
    a = linear(client, engine, group_id=mark, labels={"split": "train", "n": "1"})
    b = linear(client, engine, group_id=mark, labels={"split": "train"}, harness="mine")
    c = linear(client, engine, group_id=mark)
    client.call("POST", f"/sessions/{a}/finish", {"status": "solved", "reward": 1})
    client.call("DELETE", f"/sessions/{c}")
    export(tmp_path, "--filters", json.dumps({"groups": [mark], **filters}))
    names = {a: "a", b: "b", c: "c"}
    assert "".join(sorted(names[row["session_id"]] for row in rows(tmp_path))) == taken


def test_a_filter_on_rows_decides_before_ownership(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = client.create()
    engine.script(
        Reply([1097, 1098, 2], message=says("ab")),
        Reply([102], message=says("ok"), finish="length"),
        Reply([101, 2], message=says("hello")),
    )
    first = reply_of(client.chat(session, [user("hello")]))
    client.chat(session, [user("hello"), first, user("ok")])
    client.chat(session, [user("hello"), first, user("ab")])
    report = export(tmp_path, "--filters", '{"status": "completed"}', sessions=[session])
    [row] = rows(tmp_path)
    assert row["trained"] == 5, "the shared turn trains in the row that is left"
    assert report["dropped_leaves"] == {"filtered_status": 1}
    assert report["masked"] == {"not_picked": 1}


def test_filters_reach_sessions_whose_policy_runs_no_hooks(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine, history_policy="rollback")
    report = export(tmp_path, "--filters", '{"status": "aborted"}', sessions=[session])
    assert (report["rows"], report["masked"]) == (0, {"not_picked": 4})
    assert report["dropped_leaves"] == {"filtered_status": 1}


def test_what_was_exported_is_known_until_the_session_goes_on(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    fresh = ["--filters", '{"exported": false}']
    assert export(tmp_path / "a", *fresh, sessions=[session])["rows"] == 1
    assert export(tmp_path / "b", *fresh, sessions=[session])["rows"] == 0
    engine.script(Reply([102, 2], message=says("ok")))
    client.chat(session, [user("again")])
    assert export(tmp_path / "c", *fresh, sessions=[session])["rows"] == 2


def test_stale_sessions_are_found(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(2)]
    export(tmp_path / "a", sessions=sessions)
    client.call("POST", f"/sessions/{sessions[1]}/rewards", {"value": 1})
    assert export(tmp_path / "b", "--filters", '{"stale": true}', sessions=sessions)["rows"] == 1
    assert export(tmp_path / "c", "--filters", '{"stale": true}', sessions=sessions)["rows"] == 0


def test_a_hook_that_raises_costs_its_session_and_nothing_else(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [forked(client, engine), linear(client, engine, history_policy="rollback")]
    report = export(tmp_path, "--picker", "tests.samples.hook_functions.boom", sessions=sessions)
    assert report["dropped_sessions"] == {"failed": 1}
    assert report["failures"][0]["session"] == sessions[0]
    assert "picker exploded" in report["failures"][0]["said"]
    assert report["rows"] == 1
    assert (report["nodes"], report["dropped_nodes"]) == (5, {"failed": 3})
    assert report["masked"] == {"failed": 7}
    assert report["generated_tokens"] == report["trained_tokens"] + 7
    assert report["proof"]["adds_up"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--filters", '{"colour": "red"}'], "unknown: 'colour'; known are agent, complete_groups, "),
        (["--filters", "[]"], "must be a JSON object"),
        (["--filters", "{"], "--filters: Expecting property name"),
        (["--traces", "{"], "--traces: Expecting property name"),
        (["--filters", '{"since": "yesterday"}'], "since must be a time"),
        (["--filters", '{"status": "good"}'], "is not one of"),
        (["--filters", '{"sessions": ["x"]}'], "is no session id"),
        (["--filters", '{"labels": {"a": 1}}'], "labels must be"),
        (["--filters", '{"max_staleness": 1}'], "names no numeric weight version"),
        (["--session", "x"], "is no session id"),
        (["--picker", "nobody"], "invalid TITO_SAMPLE_PICKER"),
        (["--postprocessor", "no.such.hook"], "failed to resolve"),
        (["--max-seq-len", "0"], "max_seq_len must be"),
        (["--rerun", "nonsense"], "is no export's id"),
        (["--rerun", uuid.uuid4().hex], "does not exist"),
        (["--resume", uuid.uuid4().hex], "there is no export"),
    ],
)
def test_what_cannot_be_asked_for(toy, tmp_path: Path, arguments: list[str], said: str) -> None:
    linear(*toy)
    with pytest.raises(CommandError, match=said):
        export(tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists() or visible(tmp_path / "out") == []


def test_the_job_that_rerun_and_diff_ask_for_is_told_beside_the_report(toy, tmp_path: Path, capsys) -> None:
    export(tmp_path / "one", sessions=[linear(*toy)])
    told = re.search(r"export ([0-9a-f]{32}) in (\S+)", capsys.readouterr().err)
    assert told is not None
    assert told[2] == str(tmp_path / "one")
    export(tmp_path / "two", "--rerun", told[1])
    assert visible(tmp_path / "one") == visible(tmp_path / "two")


def test_an_interrupted_export_says_how_to_go_on(
    toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    session = linear(*toy)
    with monkeypatch.context() as patched:
        patched.setattr("trainer_export.management.commands.export_samples.look_at", interrupted)
        with pytest.raises(CommandError, match=r"interrupted: --resume [0-9a-f]{32}") as told:
            export(tmp_path, sessions=[session])
    assert not list(tmp_path.iterdir())
    call_command("export_samples", "--resume", str(told.value).split()[2], stdout=io.StringIO())
    assert len(rows(tmp_path)) == 1


def test_another_export_in_the_folder_is_never_overwritten(toy, tmp_path: Path) -> None:
    client, engine = toy
    export(tmp_path, sessions=[linear(client, engine)])
    before = {name: (tmp_path / name).read_bytes() for name in visible(tmp_path)}
    with pytest.raises(CommandError, match="holds another export"):
        export(tmp_path, sessions=[forked(client, engine)])
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_drift_stands_in_metadata_when_asked_for(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    export(tmp_path / "a", sessions=[session])
    export(tmp_path / "b", "--drift", sessions=[session])
    assert "tito_session_mismatch" not in rows(tmp_path / "a")[0]["metadata"]
    assert rows(tmp_path / "b")[0]["metadata"]["tito_session_mismatch"] == []


def unhealed(client, engine) -> str:
    """Two turns; the second prompt spells the first reply in another way."""
    session = client.create(history_policy="linear", healing=False)
    engine.script(Reply([1097, 1098, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    first = reply_of(client.chat(session, [user("hello")]))
    answer = client.chat(session, [user("hello"), first, user("ok")])
    assert answer.headers["x-tito-cause"] == "engine_rerender"
    return session


def test_un_healed_chains_fork_or_are_realigned(toy, tmp_path: Path) -> None:
    session = unhealed(*toy)
    export(tmp_path / "fork", sessions=[session])
    assert [row["trained"] for row in rows(tmp_path / "fork")] == [3, 2]
    report = export(tmp_path / "realign", "--fork-threshold-tokens", "10", sessions=[session])
    [row] = rows(tmp_path / "realign")
    assert row["tokens"].tolist() == [
        1, 5, 3, 101, 2, 3, 1, 6, 3, 100, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3, 102, 2,
    ]  # fmt: skip
    assert row["trained"] == 2
    assert report["masked"] == {"realigned": 3}


def test_counters_of_speculative_decoding_reach_the_rows(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = client.create()
    meta = {"spec_accept_token_num": 3, "spec_draft_token_num": 5, "spec_verify_ct": 2}
    engine.script(Reply([102, 2], message=says("ok"), meta=meta))
    client.chat(session, [user("hello")])
    export(tmp_path, "--shape", "miles", sessions=[session])
    assert rows(tmp_path, SHAPES["miles"])[0]["spec_info"] == {
        "spec_accept_token_num": 3, "spec_draft_token_num": 5, "spec_verify_ct": 2, "completion_token_num": 2,
    }  # fmt: skip
