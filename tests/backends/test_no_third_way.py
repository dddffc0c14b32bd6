"""Whatever JSON an engine answers, the outcome is a Generation that holds its promises or a typed error."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.backends.demo import forms
from sessions_app.backends.dispatch import Answer
from sessions_app.errors import TitoError
from tests.backends.engines import ENGINES
from tests.backends.requests import VOCAB_SIZE, make_dispatcher, make_request

FORMS: dict[str, forms.Form] = {
    "sglang": forms.sglang_chat,
    "sglang-generate": forms.sglang_generate,
    "vllm": forms.vllm_generate,
    "vllm-completions": forms.vllm_completion,
    "vllm-chat": forms.vllm_chat,
}
PROMPT = [257, 104, 105, 258]
GOOD = forms.Completion(
    identity="x", created=1, model="m", prompt_ids=PROMPT, ids=[104, 105, 258], logprobs=[-0.5, -0.25, -1.0],
    text="hi", message={"role": "assistant", "content": "hi"}, finish_reason="stop", prompt_tokens=4,
    completion_tokens=3,
)  # fmt: skip
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats()
    | st.sampled_from(["", "token_id:104", "token_id:x", "stop", "AAA="]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["type", "content"]), inner),
    max_leaves=5,
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, each in items for path in paths(each, (*at, key)))]


def changed(reply: Any, path: tuple[Any, ...], value: Any, drop: bool) -> Any:
    if not path:
        return value
    reply = copy.deepcopy(reply)
    holder = reply
    for key in path[:-1]:
        holder = holder[key]
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return reply


def read(name: str, body: bytes) -> Any:
    backend: Any = ENGINES[name](make_dispatcher("http://unused"))
    return backend.read(Answer(body, {}, "http://unused"), make_request(PROMPT))


@pytest.mark.parametrize("name", ENGINES)
def test_the_unharmed_reply_is_accepted(name):
    done = read(name, json.dumps(FORMS[name](GOOD)).encode())
    assert done.ids.tolist() == GOOD.ids
    assert done.logprobs.tolist() == GOOD.logprobs


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_change_of_any_field_is_a_sound_generation_or_a_typed_error(name, data):
    reply = FORMS[name](GOOD)
    path = data.draw(st.sampled_from(paths(reply)))
    altered = changed(reply, path, data.draw(ODD), data.draw(st.booleans()))
    try:
        done = read(name, json.dumps(altered).encode())
    except TitoError:
        return
    assert done.ids.dtype == np.int32
    assert done.logprobs.dtype == np.float64
    assert done.ids.shape == done.logprobs.shape == (done.completion_tokens,)
    assert np.isfinite(done.logprobs).all()
    assert ((done.ids >= 0) & (done.ids < VOCAB_SIZE)).all()
    assert done.prompt_tokens in (None, len(done.prompt_ids if done.prompt_ids is not None else PROMPT))
    assert done.finish_reason in ("", "stop", "tool_calls", "length", "abort", "content_filter", "error")


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=40, deadline=None)
@given(body=st.binary(max_size=40) | ODD.map(lambda value: json.dumps(value).encode()))
def test_any_body_at_all_is_a_typed_error(name, body):
    with pytest.raises(TitoError):
        read(name, body)
