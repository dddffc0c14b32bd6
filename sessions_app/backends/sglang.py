"""SGLang's chat endpoint, fed our ids: the engine parses its own reply and chat clients are given that reply.

Not here: choosing a worker and moving bytes (`dispatch`), checking values (`validation`). Invariant: the
outgoing body is the client's with the forced fields of the contract, and the order of checks and their texts
are the contract's.
"""

from typing import Any

from sessions_app import errors
from sessions_app.backends import json_wire, validation
from sessions_app.backends import reply as replies
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Answer, Dispatcher
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.headers import ROUTING_KEY
from sessions_app.backends.http_backend import HttpBackend
from sessions_app.backends.sglang_reply import common_fields, meta_info, sampled
from sessions_app.rendering.protocol import Ids


class SglangChat(HttpBackend):
    """Backend `sglang`, and `demo`, which is the same protocol spoken by our own engine."""

    speaks_chat = True
    affinity = ROUTING_KEY

    def __init__(
        self, dispatcher: Dispatcher, vocab_size: int, flags: EngineFlags, *, name: str = "sglang"
    ) -> None:
        super().__init__(dispatcher, vocab_size)
        self.name = name
        self._flags = flags

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """The client's body with the forced fields; keys that the client sent keep their place."""
        body = {key: value for key, value in request.body.items() if key not in ("stream", "stream_options")}
        body |= {"logprobs": True, "return_meta_info": True}
        if self._flags.routing_replay:
            body["return_routed_experts"] = True
        if self._flags.indexer_replay:
            body["return_indexer_topk"] = True
        body["no_stop_trim"] = False
        if self._flags.lora_path is not None:
            body["lora_path"] = self._flags.lora_path
        if request.template_kwargs:
            body["chat_template_kwargs"] = dict(request.template_kwargs)
        else:
            body.pop("chat_template_kwargs", None)
        body["input_ids"] = request.prompt_ids
        if request.routed_experts_start_len is not None:
            body["routed_experts_start_len"] = request.routed_experts_start_len
        return body

    async def generate(self, request: GenerationRequest) -> Generation:
        """One chat completion. An answer other than 200 is raised as it came."""
        body = json_wire.dumps_body(self.build_body(request), odd_numbers=request.odd_numbers)
        answer = await self._dispatcher.post(
            request, "/v1/chat/completions", body, self.affinity, with_query=True
        )
        return self._validated(answer, request)

    def read(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The validated generation of a 200."""
        return read_chat(answer, request, self._vocab_size)


def read_chat(answer: Answer, request: GenerationRequest, vocab_size: int) -> Generation:
    """The validated generation of a 200, checked in the reference's order."""
    parsed = replies.parse_object(answer.body)
    choice = replies.first_choice(parsed)
    meta = meta_info(choice, validation.NO_TOKEN_IDS)
    message = choice.get("message")
    if not isinstance(message, dict) or message.get("content") is None:
        raise errors.UpstreamNullContent(validation.NULL_CONTENT)
    _check_count(meta)
    ids, logprobs = sampled(meta, vocab_size)
    raw_reason = replies.finish(choice, "choices[0].finish_reason")
    _check_second_sources(parsed, choice, request.prompt_ids, ids)
    return Generation(
        ids=ids,
        logprobs=logprobs,
        message=message,
        response_id=replies.response_id(parsed),
        reply=parsed,
        reply_text=answer.body.decode(),
        headers=answer.headers,
        worker=answer.worker,
        **common_fields(meta, raw_reason, request.prompt_ids.size, *replies.extensions(parsed, choice)),
    )


def _check_count(meta: dict[str, Any]) -> None:
    """`completion_tokens` is the length of the logprob list; the reference's text."""
    counted = validation.required(meta, "completion_tokens", "meta_info.completion_tokens")
    entries = meta["output_token_logprobs"]
    if isinstance(entries, list):
        validation.counted(len(entries), "output_token_logprobs", counted)


def _check_second_sources(parsed: dict[str, Any], choice: dict[str, Any], prompt: Ids, ids: Ids) -> None:
    """Newer builds say the same twice (`token_ids`, `prompt_token_ids`, `usage`): disagreement is refused."""
    if choice.get("token_ids") is not None:
        validation.same_ids(choice["token_ids"], "choices[0].token_ids", ids)
    for holder, name in ((choice, "choices[0].prompt_token_ids"), (parsed, "prompt_token_ids")):
        if holder.get("prompt_token_ids") is not None:
            validation.same_prompt(holder["prompt_token_ids"], name, prompt)
    for block in replies.extensions(parsed, choice):
        _check_extension(block, prompt, ids)
    usage = replies.usage(parsed)
    if type(usage.get("completion_tokens")) is int:
        validation.same_length(
            ids.size, "output_token_logprobs", usage["completion_tokens"], "usage.completion_tokens"
        )
    if type(usage.get("prompt_tokens")) is int:
        validation.prompt_tokens(usage["prompt_tokens"], "usage.prompt_tokens", prompt.size)


def _check_extension(block: dict[str, Any], prompt: Ids, ids: Ids) -> None:
    """What `sglext` says of the ids; the sampled ones are a list for each choice."""
    if block.get("input_ids") is not None:
        validation.same_prompt(block["input_ids"], "sglext.input_ids", prompt)
    told = block.get("output_ids")
    if told is not None:
        nested = isinstance(told, list) and len(told) == 1 and isinstance(told[0], list)
        validation.same_ids(told[0] if nested else told, "sglext.output_ids", ids)
