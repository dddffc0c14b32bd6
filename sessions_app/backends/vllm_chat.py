"""vLLM's chat endpoint, observed: the engine renders and parses, and says which ids it was fed and sampled.

What it was fed may differ from our ids; the caller then records a fork. Never streamed: behind tool parsers a
stream loses ids.
"""

from typing import Any

import numpy as np

from sessions_app import errors
from sessions_app.backends import json_wire, validation
from sessions_app.backends import reply as replies
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Answer
from sessions_app.backends.vllm_base import VllmBackend
from sessions_app.backends.vllm_reply import chosen_logprobs, common_fields, token_ids
from sessions_app.backends.vllm_routing import take_routed_experts
from sessions_app.rendering.protocol import Ids

_REMOVED = frozenset({"stream", "stream_options", "input_ids", "chat_template_kwargs"})


class VllmChat(VllmBackend):
    """Backend `vllm-chat`."""

    name = "vllm-chat"
    speaks_chat = True

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """The client's body, asking for ids and logprobs."""
        body = {key: value for key, value in request.body.items() if key not in _REMOVED}
        body |= {"logprobs": True, "return_token_ids": True}
        if self._lora_name is not None:
            body["model"] = self._lora_name
        if request.template_kwargs:
            body["chat_template_kwargs"] = dict(request.template_kwargs)
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
        parsed = replies.parse_object(answer.body)
        choice = replies.first_choice(parsed)
        ids = token_ids(choice, self._vocab_size)
        logprobs = chosen_logprobs(choice, ids)
        fed = _fed(parsed, choice, self._vocab_size)
        as_sent = np.array_equal(fed, request.prompt_ids)
        start = request.routed_experts_start_len if as_sent else None
        return Generation(
            ids=ids,
            logprobs=logprobs,
            message=_message(choice),
            response_id=replies.response_id(parsed),
            prompt_ids=None if as_sent else fed,
            reply=parsed,
            reply_text=answer.body.decode(),
            headers=answer.headers,
            worker=answer.worker,
            side=take_routed_experts(choice, fed.size + ids.size, start),
            **common_fields(parsed, choice, ids, fed.size),
        )


def _fed(parsed: dict[str, Any], choice: dict[str, Any], vocab_size: int) -> Ids:
    """The prompt the engine rendered: at the top level or on the first choice, both exist in the field."""
    holder = parsed if parsed.get("prompt_token_ids") is not None else choice
    if holder.get("prompt_token_ids") is None:
        raise errors.UpstreamMissingTokenIds("invalid engine reply: prompt_token_ids is missing")
    return validation.ids(holder["prompt_token_ids"], "prompt_token_ids", vocab_size)


def _message(choice: dict[str, Any]) -> dict[str, Any]:
    """The message; null content is legal beside tool calls or reasoning."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise errors.UpstreamNullContent("invalid engine reply: choices[0].message is missing")
    spoken = ("content", "tool_calls", "reasoning_content", "reasoning")
    if message.get("content") is None and not any(message.get(key) for key in spoken):
        raise errors.UpstreamNullContent("invalid engine reply: choices[0].message.content is null")
    return message
