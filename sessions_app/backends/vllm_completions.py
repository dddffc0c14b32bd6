"""vLLM's completions endpoint with a prompt of ids: works on any vLLM, token endpoint or not.

Servers that do not know `return_token_ids` name the sampled ids `token_id:N` in the logprobs. The prompt must
come back unchanged, or at least be counted.
"""

from typing import Any

from sessions_app import errors
from sessions_app.backends import json_wire, validation
from sessions_app.backends import reply as replies
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Answer
from sessions_app.backends.vllm_base import VllmTokenBackend
from sessions_app.backends.vllm_reply import common_fields, logprob_block, named_ids
from sessions_app.backends.vllm_routing import start_field, take_routed_experts
from sessions_app.rendering.protocol import Ids

_FORCED = {
    "logprobs": 1,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
    "add_special_tokens": False,
    "skip_special_tokens": False,
    "stream": False,
}


class VllmCompletions(VllmTokenBackend):
    """Backend `vllm-completions`."""

    name = "vllm-completions"

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """The completions body; an adapter is addressed as a model."""
        model = self._lora_name or request.body.get("model")
        named = {"model": model} if model is not None else {}
        return {
            **named,
            "prompt": request.prompt_ids,
            **self._sampling.translate(request.body),
            **_FORCED,
            **start_field(request.routed_experts_start_len),
        }

    async def generate(self, request: GenerationRequest) -> Generation:
        """One generation. An answer other than 200 is raised as it came."""
        body = json_wire.dumps_body(self.build_body(request))
        answer = await self._dispatcher.post(request, "/v1/completions", body, self.affinity)
        return self._validated(answer, request)

    def read(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The validated generation of a 200."""
        parsed = replies.parse_object(answer.body)
        choice = replies.first_choice(parsed)
        ids = _sampled_ids(choice, self._vocab_size)
        name = "choices[0].logprobs.token_logprobs"
        logprobs = validation.logprobs(logprob_block(choice, "token_logprobs"), name)
        validation.same_length(ids.size, "token ids", logprobs.size, name)
        fields = common_fields(parsed, choice, ids, request.prompt_ids.size)
        _check_prompt(choice, fields["prompt_tokens"], request.prompt_ids)
        total = request.prompt_ids.size + ids.size
        return Generation(
            ids=ids,
            logprobs=logprobs,
            message=None,
            response_id=replies.response_id(parsed),
            headers=answer.headers,
            worker=answer.worker,
            side=take_routed_experts(choice, total, request.routed_experts_start_len),
            **fields,
        )


def _sampled_ids(choice: dict[str, Any], vocab_size: int) -> Ids:
    """From `token_ids`, or from the names beside the logprobs; where both are there they agree."""
    names = logprob_block(choice, "tokens")
    named = named_ids(names)
    told = choice.get("token_ids")
    if told is None and named is None:
        raise errors.UpstreamMissingTokenIds("invalid engine reply: choices[0].token_ids is missing")
    ids = validation.ids(named if told is None else told, "choices[0].token_ids", vocab_size)
    if told is not None and named is not None:
        validation.same_ids(named, "choices[0].logprobs.tokens", ids)
    return ids


def _check_prompt(choice: dict[str, Any], counted: int | None, sent: Ids) -> None:
    echoed = choice.get("prompt_token_ids")
    if echoed is not None:
        validation.same_prompt(echoed, "choices[0].prompt_token_ids", sent)
    elif counted is None:
        raise errors.UpstreamInvalidReply(
            "invalid engine reply: choices[0].prompt_token_ids and usage.prompt_tokens are missing"
        )
