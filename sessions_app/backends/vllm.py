"""vLLM's token endpoint (served with `--enable-scale-out` or `--tokens-only`): ids in, ids out.

Cancelling the request closes the connection, and vLLM stops generating then.
"""

import uuid
from typing import Any

from sessions_app.backends import json_wire, validation
from sessions_app.backends import reply as replies
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Answer
from sessions_app.backends.vllm_base import VllmTokenBackend
from sessions_app.backends.vllm_reply import chosen_logprobs, common_fields, token_ids
from sessions_app.backends.vllm_routing import start_field, take_routed_experts

_PASSED = ("cache_salt", "priority")


class VllmGenerate(VllmTokenBackend):
    """Backend `vllm`."""

    name = "vllm"

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """Everything but the `request_id`, which is made for each attempt."""
        body: dict[str, Any] = {
            "token_ids": request.prompt_ids,
            "sampling_params": {
                **self._sampling.translate(request.body),
                "logprobs": 1,
                "skip_special_tokens": False,
                **start_field(request.routed_experts_start_len),
            },
            "stream": False,
        }
        if self._lora_name is not None:
            body["model"] = self._lora_name
        return body | {key: request.body[key] for key in _PASSED if request.body.get(key) is not None}

    async def generate(self, request: GenerationRequest) -> Generation:
        """One generation. An answer other than 200 is raised as it came."""
        body = json_wire.dumps_body({"request_id": uuid.uuid4().hex, **self.build_body(request)})
        answer = await self._dispatcher.post(request, "/inference/v1/generate", body, self.affinity)
        return self._validated(answer, request)

    def read(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The validated generation of a 200."""
        parsed = replies.parse_object(answer.body)
        choice = replies.first_choice(parsed)
        ids = token_ids(choice, self._vocab_size)
        logprobs = chosen_logprobs(choice, ids)
        fields = common_fields(parsed, choice, ids, request.prompt_ids.size)
        if choice.get("prompt_token_ids") is not None:
            validation.same_prompt(
                choice["prompt_token_ids"], "choices[0].prompt_token_ids", request.prompt_ids
            )
        total = request.prompt_ids.size + ids.size
        return Generation(
            ids=ids,
            logprobs=logprobs,
            message=None,
            response_id=replies.response_id(parsed, "request_id"),
            headers=answer.headers,
            worker=answer.worker,
            side=take_routed_experts(choice, total, request.routed_experts_start_len),
            **fields,
        )
