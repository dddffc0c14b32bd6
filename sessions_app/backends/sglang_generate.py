"""SGLang's native endpoint: ids in, ids out; the renderer parses the reply.

Invariant: the logprob list is the truth about what was sampled. `output_ids` may begin with ids of the
prompt's tail (a known fault) and is only compared. A cancelled request is aborted by its `rid`.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from sessions_app.backends import json_wire, validation
from sessions_app.backends import reply as replies
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Abort, Answer, Dispatcher
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.headers import ROUTING_KEY
from sessions_app.backends.http_backend import HttpBackend
from sessions_app.backends.sampling import COMMON, SamplingNames
from sessions_app.backends.sglang_reply import (
    LOGPROB_LIST,
    common_fields,
    completion_tokens,
    meta_info,
    sampled,
)
from sessions_app.rendering.protocol import Ids

_NO_LOGPROBS = "invalid engine reply: meta_info.output_token_logprobs is missing (requires return_logprob)"
_CANONICAL = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "no_stop_trim": True,
}
_NAMES = COMMON | {
    "seed": "sampling_seed",
    "min_tokens": "min_new_tokens",
    "regex": "regex",
    "json_schema": "json_schema",
    "ebnf": "ebnf",
}


class SglangGenerate(HttpBackend):
    """Backend `sglang-generate`."""

    name = "sglang-generate"
    speaks_chat = False
    affinity = ROUTING_KEY
    sampling_names: Mapping[str, str] = _NAMES

    def __init__(self, dispatcher: Dispatcher, vocab_size: int, flags: EngineFlags) -> None:
        super().__init__(dispatcher, vocab_size)
        self._flags = flags
        self._sampling = SamplingNames(self.name, "max_new_tokens", self.sampling_names)

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """Everything but the `rid`, which is made for each attempt."""
        body: dict[str, Any] = {
            "input_ids": request.prompt_ids,
            "sampling_params": {**_CANONICAL, **self._sampling.translate(request.body)},
            "return_logprob": True,
            "stream": False,
        }
        if self._flags.lora_path is not None:
            body["lora_path"] = self._flags.lora_path
        if self._flags.routing_replay:
            body["return_routed_experts"] = True
        if self._flags.indexer_replay:
            body["return_indexer_topk"] = True
        if request.routed_experts_start_len is not None:
            body["routed_experts_start_len"] = request.routed_experts_start_len
        return body

    async def generate(self, request: GenerationRequest) -> Generation:
        """One generation. An answer other than 200 is raised as it came."""
        rid = uuid.uuid4().hex
        body = json_wire.dumps_body({"rid": rid, **self.build_body(request)})
        abort = Abort("/abort_request", json_wire.dumps_body({"rid": rid}))
        answer = await self._dispatcher.post(request, "/generate", body, self.affinity, abort=abort)
        return self._validated(answer, request)

    def read(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The validated generation of a 200."""
        return read_generate(answer, request, self._vocab_size)


def read_generate(answer: Answer, request: GenerationRequest, vocab_size: int) -> Generation:
    """The validated generation of a 200."""
    parsed = replies.parse_object(answer.body)
    meta = meta_info(parsed, _NO_LOGPROBS)
    ids, logprobs = sampled(meta, vocab_size)
    validation.same_length(ids.size, LOGPROB_LIST, completion_tokens(meta), "meta_info.completion_tokens")
    _check_output_ids(parsed.get("output_ids"), ids)
    raw_reason, matched = _finish(meta)
    fields = common_fields(meta, raw_reason, request.prompt_ids.size)
    return Generation(
        ids=ids,
        logprobs=logprobs,
        message=None,
        response_id=replies.response_id(meta),
        headers=answer.headers,
        worker=answer.worker,
        **fields | {"extras": {**fields["extras"], **matched}},
    )


def _check_output_ids(output_ids: object, ids: Ids) -> None:
    """Where the ids are told twice, the second list ends with the first."""
    if output_ids is None:
        return
    listed = validation.json_list(output_ids, "output_ids")
    validation.same_ids(listed[max(0, len(listed) - ids.size) :], "output_ids", ids)


def _finish(meta: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The raw reason and what stop was matched; SGLang wraps both in an object."""
    name = "meta_info.finish_reason"
    value = validation.required(meta, "finish_reason", name)
    if not isinstance(value, dict):
        return validation.optional_text(value, name), {}
    reason = validation.optional_text(validation.required(value, "type", f"{name}.type"), f"{name}.type")
    return reason, {"matched_stop": value["matched"]} if "matched" in value else {}
