"""`manage.py demo_engine` as a process: starts without a database, speaks, stops on a signal."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer

MANAGE = Path(__file__).parents[2] / "manage.py"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, "TITO_HOME": str(tmp_path_factory.mktemp("home")), "DATABASE_URL": ""}
    process = start(environment, "--port", "0", "--latency-ms", "5")
    assert process.stdout is not None
    yield process, process.stdout.readline().rsplit(" ", 1)[-1].strip()
    process.kill()
    process.wait()


def start(environment: dict[str, str], *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(MANAGE), "demo_engine", *options]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def post(url: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)


def test_it_answers_with_tokens_that_decode_to_its_text_and_are_not_canonical(engine):
    _, url = engine
    tokenizer = load_tokenizer(str(DEMO_MODEL))
    prompt = tokenizer.encode(
        "<|im_start|>user\nTell me about checkpoints.<|im_end|>\n<|im_start|>assistant\n"
    )
    reply = post(f"{url}/generate", {"input_ids": prompt.tolist(), "sampling_params": {"seed": 5}})
    ids = np.asarray(reply["output_ids"], dtype=np.int32)
    assert tokenizer.decode(ids) == reply["text"]
    assert ids.tolist() != tokenizer.encode(str(reply["text"])).tolist()
    assert int(ids[-1]) in tokenizer.end_ids


def test_sigterm_ends_it_cleanly(engine):
    process, _ = engine
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_nonsense_is_a_clear_error():
    process = start(dict(os.environ), "--fault", "nonsense", "--port", "0")
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "no fault 'nonsense'" in errors
