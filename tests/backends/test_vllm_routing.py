"""Routed experts of vLLM: a `.npy` on the choice becomes the stored rows, or the reply is refused."""

import base64
import io
import json
from typing import Any

import numpy as np
import pytest

from sessions_app import errors
from sessions_app.backends.base import Generation
from sessions_app.backends.demo import forms
from sessions_app.backends.demo.faults import Status
from tests.backends.engines import ENGINES
from tests.backends.requests import make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine

PROMPT = [257, 104, 105, 258]
IDS = [104, 105, 258]
EVERY = len(PROMPT) + len(IDS) - 1
FORMS = {
    "vllm": forms.vllm_generate,
    "vllm-completions": forms.vllm_completion,
    "vllm-chat": forms.vllm_chat,
}


def experts(rows: int = EVERY, dtype: str = "uint8") -> np.ndarray:
    """Rows that tell where they stand: two layers, two experts each."""
    return np.arange(rows * 4, dtype=dtype).reshape(rows, 2, 2)


def saved(array: np.ndarray) -> str:
    stream = io.BytesIO()
    np.save(stream, array)
    return base64.b64encode(stream.getvalue()).decode()


def answer(name: str, rider: Any, fed: list[int] | None = None) -> Status:
    done = forms.Completion(
        identity="r", created=1, model="m", prompt_ids=fed or PROMPT, ids=IDS, logprobs=[-0.5] * len(IDS),
        text="hi", message={"role": "assistant", "content": "hi"}, finish_reason="stop",
        prompt_tokens=len(fed or PROMPT), completion_tokens=len(IDS),
    )  # fmt: skip
    body = FORMS[name](done)
    body["choices"][0]["routed_experts"] = rider
    return Status(200, {}, json.dumps(body).encode())


async def generate(name: str, reply: Status, start: int | None = None) -> tuple[Generation, Any]:
    async with FakeEngine() as engine, started(ENGINES[name](make_dispatcher(engine.url))) as backend:
        engine.script(reply)
        done = await backend.generate(make_request(PROMPT, routed_experts_start_len=start))
        return done, engine.bodies[0]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", ">i4"])
async def test_rows_of_any_width_become_int32(name: str, dtype: str) -> None:
    done, _ = await generate(name, answer(name, saved(experts(dtype=dtype))))
    assert done.side == {"routed_experts": experts().astype("<i4").tobytes()}


@pytest.mark.parametrize("name", FORMS)
async def test_a_server_that_sends_none_is_one(name: str) -> None:
    done, body = await generate(name, answer(name, None))
    assert done.side == {}
    assert "routed_experts_prompt_start" not in json.dumps(body)


async def test_columns_first_is_read_as_it_is_meant() -> None:
    done, _ = await generate("vllm", answer("vllm", saved(np.asfortranarray(experts()))))
    assert done.side["routed_experts"] == experts().astype("<i4").tobytes()


@pytest.mark.parametrize("name", ["vllm", "vllm-completions"])
@pytest.mark.parametrize("sent", [EVERY - 3, EVERY])
async def test_known_rows_are_not_asked_for_and_cut_where_the_server_sends_them(name: str, sent: int) -> None:
    done, body = await generate(name, answer(name, saved(experts()[EVERY - sent :])), start=3)
    assert body.get("sampling_params", body)["routed_experts_prompt_start"] == 3
    assert done.side == {"routed_experts": experts()[3:].astype("<i4").tobytes()}


async def test_an_engine_that_rendered_the_prompt_itself_is_asked_for_all_rows() -> None:
    fed = [1, 2, 3]
    rows = len(fed) + len(IDS) - 1
    same, body = await generate("vllm-chat", answer("vllm-chat", saved(experts())), start=3)
    other, _ = await generate("vllm-chat", answer("vllm-chat", saved(experts(rows)), fed), start=3)
    assert "routed_experts_prompt_start" not in body
    assert same.side == {"routed_experts": experts()[3:].astype("<i4").tobytes()}
    assert other.side == {"routed_experts": experts(rows).astype("<i4").tobytes()}


async def test_clients_of_a_chat_do_not_see_them() -> None:
    done, _ = await generate("vllm-chat", answer("vllm-chat", saved(experts())))
    assert done.reply is not None
    assert done.reply["choices"][0]["routed_experts"] is None


def claimed(shape: str) -> str:
    """A header that says more than follows it."""
    head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return base64.b64encode(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()).decode()


@pytest.mark.parametrize(
    ("rider", "told"),
    [
        (saved(experts(EVERY - 1)), "rows where"),
        (saved(experts(EVERY + 1)), "rows where"),
        (saved(experts().reshape(EVERY, 4)), "by token, layer and rank"),
        (saved(experts().astype(float)), "must hold integers"),
        (saved(np.array([[["x"]]], dtype=object)), "no .npy array"),
        (base64.b64encode(b"no array").decode(), "no .npy array"),
        (claimed("(1000000000, 48, 8)"), "no .npy array"),
        ("%", "no base64"),
        ([1, 2], "routed_experts"),
    ],
)
async def test_what_cannot_be_laid_beside_the_ids_is_refused(rider: Any, told: str) -> None:
    with pytest.raises(errors.UpstreamInvalidReply, match=told):
        await generate("vllm", answer("vllm", rider))
