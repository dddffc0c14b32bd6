"""Span and attribute names of the reference, in one place; nothing here decides anything."""

VIRTUAL = "agentlightning.virtual"
ANNOTATION = "agentlightning.annotation"
OPERATION = "agentlightning.operation"
REWARD = "agentlightning.reward"
LINK = "agentlightning.link"

OPERATION_NAME = "agentlightning.operation.name"
OPERATION_INPUT = "agentlightning.operation.input"
OPERATION_OUTPUT = "agentlightning.operation.output"

ROLLOUT_ID = "agentlightning.rollout_id"
ATTEMPT_ID = "agentlightning.attempt_id"
SPAN_SEQUENCE_ID = "agentlightning.span_sequence_id"

VIRTUAL_ROOT = "virtual-root"

PROMPT_IDS = ("prompt_token_ids", f"{OPERATION_OUTPUT}.prompt_token_ids")
RESPONSE_IDS = (
    "response_token_ids",
    f"{OPERATION_OUTPUT}.response_token_ids.0",
    f"{OPERATION_OUTPUT}.choices.0.token_ids",
    f"{OPERATION_OUTPUT}.choices.0.provider_specific_fields.token_ids",
)
RESPONSE_ID = ("gen_ai.response.id", f"{OPERATION_OUTPUT}.id")
