"""Does an engine read ids as we do? Asked once per engine, when readiness is asked for, and never of a
server that
does not first say it is SGLang or vLLM: a stand-in would take the question for a generation.

Our ids of a known sentence are sent to the engine's `/detokenize`; an engine with another tokenizer gives
another text.
"""

from dataclasses import dataclass

from sessions_app import errors
from sessions_app.backends import json_wire
from sessions_app.backends.http import HttpClient
from sessions_app.rendering.protocol import Ids, Renderer

SENTENCE = "Token in, token out: 12 checkpoints, naïve glue and one fork."
_WHO = (("/get_model_info", "model_path"), ("/version", "version"))
"""Paths that SGLang and vLLM tell about themselves under, and a key of the answer."""
_TIMEOUT_S = 5.0
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Probe:
    """A sentence and our ids of a message that holds it."""

    ids: Ids
    sentence: str


def probe_of(renderer: Renderer) -> Probe | None:
    """None for a template that cannot render a single user message."""
    try:
        ids = renderer.render([{"role": "user", "content": SENTENCE}], None, add_generation_prompt=False)
    except errors.TitoError:
        return None
    return Probe(ids, SENTENCE) if SENTENCE in renderer.decode(ids) else None


async def reads_alike(client: HttpClient, url: str, probe: Probe) -> bool | None:
    """Whether the engine decodes our ids to our sentence; None = it cannot be asked."""
    try:
        if not any([await _tells(client, url + path, key) for path, key in _WHO]):
            return None
        body = json_wire.dumps_body({"tokens": probe.ids, "skip_special_tokens": False})
        reply = await client.request("POST", f"{url}/detokenize", body, _JSON, _TIMEOUT_S)
        text = _text(json_wire.loads(reply.body)) if reply.status == 200 else None
    except (errors.TitoError, ValueError):
        return None
    return None if text is None else probe.sentence in text


async def _tells(client: HttpClient, url: str, key: str) -> bool:
    reply = await client.request("GET", url, None, {}, _TIMEOUT_S)
    told = json_wire.loads(reply.body) if reply.status == 200 else None
    return isinstance(told, dict) and key in told


def _text(reply: object) -> str | None:
    """SGLang says `text`, vLLM `prompt`."""
    if not isinstance(reply, dict):
        return None
    text = reply.get("text", reply.get("prompt"))
    return text if isinstance(text, str) else None
