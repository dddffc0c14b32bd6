"""Random traces that run into the rules: ties, shared ids, missing parents, cycles, odd attributes."""

from random import Random
from typing import Any

Json = dict[str, Any]
CALL_NAMES = ["openai.chat.completion", "openai.chat.completion.create", "chat gpt", "litellm_request"]
AGENTS = [
    {"agent.name": "solver"},
    {"agentops.span.kind": "agent", "operation.name": "solver"},
    {"agentops.span.kind": "agent", "langchain.chain.type": "critic"},
    {"recipient_agent_type": "critic"},
    {"langchain.chain.type": "solver"},
    {"executor.id": ""},
    {"type": "agent", "agentlightning.operation.input.name": "solver"},
    {"type": "tool", "agentlightning.operation.input.name": "solver"},
    {"lc_name": "critic"},
]


def spans(random: Random, most: int = 14) -> list[Json]:
    """Parents are mostly earlier spans; some are missing, some later ones, some their own children's."""
    count = random.randint(1, most)
    made = [_span(random, number) for number in range(count)]
    for number, span in enumerate(made):
        span["parent_id"] = _parent(random, number, count)
    made += [dict(random.choice(made)) for _ in range(random.choice([0, 0, 0, 0, 1, 2]))]
    if random.random() < 0.5:
        random.shuffle(made)
    return made


def _parent(random: Random, number: int, count: int) -> str | None:
    luck = random.random()
    if number == 0 or luck < 0.06:
        return None
    if luck < 0.1:
        return random.choice(["gone", "lost", ""])
    if luck < 0.13:
        return f"s{random.randrange(count)}"
    return f"s{random.randrange(number)}" if luck < 0.5 else "s0"


def _span(random: Random, number: int) -> Json:
    start = 100.0 + random.randrange(0, 24) / 2
    length = random.choice([0, 0, 1, 1, 2, 3, 5, 9, 20, -1]) / 2
    name, attributes = _kind(random, number)
    return {
        "span_id": f"s{number}",
        "parent_id": None,
        "trace_id": "t",
        "rollout_id": "r",
        "attempt_id": "a",
        "sequence_id": random.randrange(8),
        "name": name,
        "status": {"status_code": "OK", "description": None},
        "attributes": attributes,
        "start_time": start,
        "end_time": start + length,
    }


def _kind(random: Random, number: int) -> tuple[str, Json]:
    luck = random.random()
    if luck < 0.45:
        return _call(random, number)
    if luck < 0.65:
        return _reward(random)
    if luck < 0.9:
        name = random.choice(["work", "langchain.Chain.run", "invoke_agent"])
        return name, {**random.choice([*AGENTS, {}]), **random.choice([{}, {}, *AGENTS])}
    return random.choice(["work", *CALL_NAMES]), {**_reward(random)[1], **_call(random, number)[1]}


def _call(random: Random, number: int) -> tuple[str, Json]:
    parts = [part(random, number) for part in (_response_id, _prompt_ids, _response_ids, _content)]
    attributes = {key: value for part in parts for key, value in part.items()}
    return random.choice([*CALL_NAMES, "raw_gen_ai_request"]), attributes


def _response_id(random: Random, number: int) -> Json:
    told = f"id-{random.choice([number, number, number, 0, 1])}"
    return random.choice(
        [
            {"gen_ai.response.id": told},
            {"gen_ai.response.id": told},
            {"agentlightning.operation.output.id": told},
            {"gen_ai.response.id": 7, "agentlightning.operation.output.id": told},
            {"llm.hosted_vllm.id": told},
            {"gen_ai.response.id": ""},
            {},
        ]
    )


def _prompt_ids(random: Random, number: int) -> Json:
    ids = [number, *(random.randrange(4) for _ in range(random.randrange(3)))]
    out = "agentlightning.operation.output"
    return random.choice(
        [
            {"prompt_token_ids": ids},
            {"prompt_token_ids": ids, "llm.hosted_vllm.prompt_token_ids": str(ids)},
            {f"{out}.prompt_token_ids": ids},
            {"prompt_token_ids": str(ids), f"{out}.prompt_token_ids": ids},
            {"prompt_token_ids": [], f"{out}.prompt_token_ids": ids},
            {"prompt_token_ids": [1.5], f"{out}.prompt_token_ids": [True, False]},
            {"llm.hosted_vllm.prompt_token_ids": str(tuple(ids))},
            {},
        ]
    )


def _response_ids(random: Random, number: int) -> Json:
    ids = [50 + number]
    out = "agentlightning.operation.output"
    forms: list[Json] = [
        {"response_token_ids": ids},
        {"response_token_ids": str(ids)},
        {f"{out}.response_token_ids.0": ids},
        {f"{out}.choices.0.token_ids": ids},
        {f"{out}.choices.0.provider_specific_fields.token_ids": ids},
        {"llm.hosted_vllm.response_token_ids": str([ids, [9]])},
        {"llm.hosted_vllm.choices": str([{"token_ids": ids}])},
        {"llm.hosted_vllm.choices": "[{'token_ids': [1], 'logprob': nan}]"},
        {},
    ]
    return {**random.choice(forms), **random.choice(forms)}


def _content(random: Random, number: int) -> Json:
    image = '[{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}]'
    forms: list[Json] = [
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hi"},
        {"gen_ai.prompt.1.content": image, "gen_ai.prompt.0.content": "[", "gen_ai.prompt.note": "n"},
        {"gen_ai.prompt.content": image},
        {"agentlightning.operation.input.messages.0.content": image},
        {"agentlightning.operation.input.model": "m"},
        {"gen_ai.request.model": "m", "gen_ai.request.functions.0.name": "f"},
        {"gen_ai.completion.0.content": "yes", "gen_ai.completion.00.content": "no"},
        {"agentlightning.operation.output.choices.0.message.content": "yes"},
        {"agentlightning.operation.output.usage": 3},
        {"logprobs.content": '[{"logprob": -0.5}]'},
        {"logprobs.content": 3},
        {"gen_ai.prompt": "[]"} if random.random() < 0.05 else {},
        {"logprobs.content": "["} if random.random() < 0.05 else {},
    ]
    return {key: value for _ in range(3) for key, value in random.choice(forms).items()}


def _reward(random: Random) -> tuple[str, Json]:
    value = random.choice([0.0, 1.0, 0.5, -2.0])
    prefix = "agentlightning.reward"
    forms: list[tuple[str, Json]] = [
        ("agentlightning.annotation", {f"{prefix}.0.name": "primary", f"{prefix}.0.value": value}),
        ("work", {f"{prefix}.1.name": "b", f"{prefix}.1.value": 9.0}
         | {f"{prefix}.0.name": "a", f"{prefix}.0.value": str(value)}),
        ("agentlightning.annotation", {"reward": value}),
        ("work", {"reward": value}),
        ("work", {"agentops.task.output": f'{{"type": "reward", "value": {value}}}'}),
        ("work", {"agentops.entity.output": f'{{"type": "reward", "value": {value}}}'}),
        ("work", {"agentops.task.output": "{", "agentops.entity.output": '{"type": "reward", "value": 3}'}),
        ("agentlightning.annotation",
         {"agentops.task.output": '{"type": "reward", "value": null}', "reward": value}),
        ("agentlightning.operation", {"agentlightning.operation.name": prefix}),
    ]  # fmt: skip
    if random.random() < 0.02:
        keys = [f"{prefix}_note", prefix, f"{prefix}.1.value", f"{prefix}.0.value"]
        return "work", {random.choice(keys): value}
    return random.choice(forms)
