"""The client against the live server: every call, refusals, retries, lost leases; and what it imports."""

import subprocess
import sys
import threading
import time
import uuid

import httpx
import numpy as np
import pytest
from django.conf import settings

from sessions_app.api.wiring import conninfo
from tests.client import user
from tests.exports.exporting import linear
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from tests.integration.web import ROOT
from trainer_export.batches import verl_batch
from trainer_export.client import LeaseLost, ServerError, Session, TitoClient
from trainer_export.jobs.running import look_at
from trainer_export.renderers import profile_renderer


@pytest.fixture
def client(toy):
    profile_renderer.cache_clear()
    with TitoClient(toy[0].url) as made:
        yield made


def turn(toy, session: Session) -> None:
    plain, engine = toy
    engine.script(Reply([102, 2], message=says("ok")))
    assert plain.chat(session.id, [user("hello")]).status == 200


def test_it_needs_neither_django_nor_torch_nor_numpy() -> None:
    blocked = ("django", "torch", "numpy", "psycopg", "celery", "rest_framework", "pyarrow", "sessions_app")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
        "from trainer_export.client import TitoClient\n"
        "with TitoClient('http://127.0.0.1:9', retries=0) as client:\n"
        "    print(client.session('a' * 32).openai_base_url)\n"
        "print(sorted(name for name in sys.modules if name.startswith('trainer_export')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env={})
    assert ran.stdout.splitlines() == [
        f"http://127.0.0.1:9/sessions/{'a' * 32}/v1",
        "['trainer_export', 'trainer_export.client']",
    ], ran.stderr


def test_batches_need_numpy_only() -> None:
    blocked = ("django", "torch", "psycopg", "celery", "rest_framework", "pyarrow", "sessions_app", "httpx")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked})); import trainer_export.batches"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={}).returncode == 0


def test_a_rollout_from_create_to_samples(toy, client: TitoClient) -> None:
    session = client.create(group_id=uuid.uuid4().hex, group_size=1)
    assert session.openai_base_url == f"{client.base_url}/sessions/{session.id}/v1"
    assert session.anthropic_base_url == f"{client.base_url}/sessions/{session.id}"
    turn(toy, session)
    first = session.reward(0.5, node=0, name="judge")
    again = session.reward(0.5, node=0, name="judge")
    assert (first.created, again.created, first.key == again.key, first.node) == (True, False, True, 0)
    assert session.finish("solved", reward=1.0)["rollout"]["group"]["complete"] is True
    got = session.samples(metadata={"x": 1})
    assert (got.samples[0]["reward"], got.samples[0]["metadata"]["x"], got.empty_reason) == (0.5, 1, None)
    assert session.samples(max_seq_len=1).empty_reason == "all_truncated"
    session.delete()
    with pytest.raises(ServerError, match="404 session_not_found"):
        session.samples()


def test_refusals_name_their_code(client: TitoClient) -> None:
    with pytest.raises(ServerError) as caught:
        client.create(history_policy="nonsense")
    assert (caught.value.status, caught.value.code) == (400, "invalid_argument")
    assert "history_policy must be one of" in caught.value.text


def test_an_export_is_waited_for(toy, client: TitoClient) -> None:
    plain, engine = toy
    session = linear(plain, engine)
    path = f"client/{uuid.uuid4().hex}"
    job = client.export(path, shape="trl", format="jsonl", filters={"sessions": [session]})
    worker = threading.Timer(
        0.3, lambda: look_at(conninfo(), settings.TITO, profile_renderer, uuid.UUID(job.id))
    )
    worker.start()
    assert job.wait(timeout_s=20, poll_s=0.1)["report"]["rows"] == 1
    worker.join()
    with pytest.raises(ServerError, match="409"):
        job.cancel()
    other = client.export(path + "x", filters={"sessions": [session]})
    other.cancel()
    with pytest.raises(ServerError, match="export_cancelled"):
        other.wait()
    assert other.resume()["state"] == "pending"
    with pytest.raises(TimeoutError):
        other.wait(timeout_s=0.05, poll_s=0.02)


def test_a_lease_that_was_lost_is_told(toy, client: TitoClient) -> None:
    plain, engine = toy
    session = linear(plain, engine)
    plain.call("POST", f"/sessions/{session}/finish", {})
    mine = next(client.stream(lease_s=0.01))
    time.sleep(0.05)
    theirs = next(client.stream())
    assert (theirs.id, theirs.rows, theirs.deliveries) == (mine.id, mine.rows, mine.deliveries + 1)
    with pytest.raises(LeaseLost):
        mine.ack()
    theirs.release()
    for found in client.stream(idle_s=0.2):
        found.ack()
        found.ack()
    assert list(client.stream(idle_s=0.1)) == []


class Flaky(httpx.BaseTransport):
    """Fails as often as told, then answers."""

    def __init__(self, *failures: int | Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        failure = self.failures.pop(0) if self.failures else 200
        if isinstance(failure, Exception):
            raise failure
        return httpx.Response(failure, json={"rewards": [{"key": "k", "node": None, "created": True}]})


def flaky(monkeypatch, *failures: int | Exception) -> tuple[TitoClient, Flaky]:
    import trainer_export.client as module

    monkeypatch.setattr(module, "_PAUSES_S", (0.0,))
    client, transport = TitoClient("http://server"), Flaky(*failures)
    client._http = httpx.Client(transport=transport, base_url="http://server")
    return client, transport


def test_what_may_be_said_twice_is_repeated(monkeypatch) -> None:
    client, transport = flaky(monkeypatch, httpx.ConnectError("no"), 503, httpx.ReadTimeout("slow"))
    assert client.session("0" * 32).reward(1.0).created
    assert transport.calls == 4


def test_what_may_not_is_not(monkeypatch) -> None:
    client, transport = flaky(monkeypatch, httpx.ReadTimeout("slow"))
    with pytest.raises(httpx.ReadTimeout):
        client.create()
    assert transport.calls == 1


def test_it_gives_up_and_never_repeats_a_refusal(monkeypatch) -> None:
    client, transport = flaky(monkeypatch, *[503] * 9)
    with pytest.raises(ServerError, match="503"):
        client.session("0" * 32).reward(1.0)
    assert transport.calls == 5
    client, transport = flaky(monkeypatch, 400)
    with pytest.raises(ServerError, match="400"):
        client.session("0" * 32).reward(1.0)
    assert transport.calls == 1


def test_a_verl_batch_pads_prompts_left_and_responses_right() -> None:
    def row(prompt: list[int], response: list[int]) -> dict[str, object]:
        ones = [1] * len(response)
        return {
            "prompts": prompt, "responses": response, "response_mask": ones,
            "rollout_log_probs": [-0.5] * len(response), "rm_scores": [0.0] * len(response), "uid": "u",
            "rollout_id": "r", "group_id": None, "sample_id": "s", "rollout_weight": 1.0, "reward": None,
        }  # fmt: skip

    rows = [row([5, 6], [7]), row([8], [9, 10, 11])]
    tensors, others = verl_batch(rows, pad_token_id=99)
    assert tensors["input_ids"].tolist() == [[5, 6, 7, 99, 99], [99, 8, 9, 10, 11]]
    assert tensors["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]
    assert tensors["position_ids"].tolist() == [[0, 1, 2, 2, 2], [0, 0, 1, 2, 3]]
    assert tensors["response_mask"].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert {name: array.dtype for name, array in tensors.items()} == {
        **dict.fromkeys(
            ("prompts", "responses", "input_ids", "attention_mask", "position_ids", "response_mask"), np.int64
        ),
        **dict.fromkeys(("rollout_log_probs", "rm_scores"), np.float32),
    }
    assert others["uid"].tolist() == ["u", "u"]
    wide, _ = verl_batch(rows, 99, prompt_length=4, response_length=4)
    assert np.shape(wide["input_ids"]) == (2, 8)
    with pytest.raises(ValueError, match="a batch needs a row"):
        verl_batch([], 99)
    with pytest.raises(ValueError, match="the batch holds 2"):
        verl_batch(rows, 99, response_length=2)
