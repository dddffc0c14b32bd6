"""`manage.py triplets`, as a process without any service."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.traces.making import call, session

ROOT = Path(__file__).parent.parent.parent
VECTORS = ROOT / "tests" / "vectors" / "triplets"
NO_SERVICES = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1"}


def run(*arguments, text=""):
    return subprocess.run(
        [sys.executable, "manage.py", "triplets", *arguments],
        cwd=ROOT,
        env=os.environ | NO_SERVICES,
        input=text,
        capture_output=True,
        text=isinstance(text, str),
        timeout=60,
    )


def test_a_file(tmp_path):
    source = tmp_path / "spans.json"
    source.write_text(json.dumps([session(), call("c", "s", 1, 2)]))
    done = run(
        "--input", str(source), "--adapter", "TracerTraceToTriplet", "--options", '{"agent_match": null}'
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["metadata"]["response_id"] == "chatcmpl-c"


def test_an_error_of_the_conversion_is_an_answer(tmp_path):
    source = tmp_path / "spans.json"
    source.write_text("[]")
    done = run("--input", str(source))
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "error": {"type": "ValueError", "message": "No spans provided to create TraceTree."}
    }


def test_lines_answer_each_request_in_order():
    vectors = [json.loads(path.read_text()) for path in sorted(VECTORS.glob("*.json"))]
    requests = [
        json.dumps({key: vector[key] for key in ("adapter", "options", "input_spans")}) for vector in vectors
    ]
    events = {"adapter": "v1.events_to_triplets", "options": {}, "input": []}
    done = run("--lines", text="\n".join([*requests, "not json", "", json.dumps(events)]) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[: len(vectors)] == [vector["expected"] for vector in vectors]
    assert answers[len(vectors)]["error"]["type"] == "JSONDecodeError"
    assert answers[-1] == {"triplet_events": [], "triplets": [], "final_reward": None}


def test_a_line_that_is_no_text_is_answered_and_the_next_one_too():
    events = {"adapter": "v1.events_to_triplets", "options": {}, "input": []}
    done = run("--lines", text=b'{"adapter": "\xff"}\n' + json.dumps(events).encode())
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["error"]["type"] == "UnicodeDecodeError"
    assert second["triplets"] == []


@pytest.mark.parametrize("arguments", [(), ("--input", "/no/such/file"), ("--input", "-", "--options", "{")])
def test_a_call_that_cannot_be_read_fails(arguments):
    done = run(*arguments)
    assert done.returncode != 0
    assert done.stderr
