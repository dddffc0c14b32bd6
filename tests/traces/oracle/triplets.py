"""The two triplet adapters."""

import ast
import json
from typing import Any

from tests.traces.oracle.nested import first_ids, first_nested, first_string
from tests.traces.oracle.tree import Json, grown, repaired, reward_of, rewarded, selected

OUT, IN = "agentlightning.operation.output", "agentlightning.operation.input"


def tracer(spans: list[Json], options: Json) -> list[Json]:
    root = grown(spans)
    if options.get("repair_hierarchy", True):
        repaired(root)
    found = [(knot, triplet(knot.attributes, label)) for knot, label in selected(root, options)]
    if options.get("_skip_empty_token_spans"):
        found = [(knot, one) for knot, one in found if _has_ids(one)]
    policy = options.get("reward_match", "first_occurrence")
    rewards = rewarded(root, policy, {knot.id for knot, _ in found})
    made = [{**one, "reward": rewards.get(knot.id)} for knot, one in found]
    if made and options.get("final_reward") is not None:
        made[-1]["reward"] = options["final_reward"]
    return made


def _has_ids(one: Json) -> bool:
    return bool(one["prompt"]["token_ids"] and one["response"]["token_ids"])


def triplet(a: Json, label: Any) -> Json:
    prompt = first_nested(a, "gen_ai.prompt", f"{IN}.messages")
    response = {
        "token_ids": first_ids(
            a,
            "response_token_ids",
            f"{OUT}.response_token_ids.0",
            f"{OUT}.choices.0.token_ids",
            f"{OUT}.choices.0.provider_specific_fields.token_ids",
        ),
        "raw_content": first_nested(a, "gen_ai.completion", f"{OUT}.choices"),
    }
    if isinstance(a.get("logprobs.content"), str):
        response["logprobs"] = json.loads(a["logprobs.content"])
    return {
        "prompt": {
            "token_ids": first_ids(a, "prompt_token_ids", f"{OUT}.prompt_token_ids"),
            "raw_content": prompt,
            "image_urls": images(prompt),
        },
        "response": response,
        "reward": None,
        "metadata": {
            "request": _but(first_nested(a, "gen_ai.request", IN), "messages"),
            "response": _but(
                first_nested(a, "gen_ai.response", OUT),
                "choices",
                "prompt_token_ids",
                "response_token_ids",
            ),
            "response_id": first_string(a, "gen_ai.response.id", f"{OUT}.id"),
            "agent_name": label,
        },
    }


def _but(value: Any, *keys: str) -> Any:
    return {key: value[key] for key in value if key not in keys} if isinstance(value, dict) else value


def images(prompt: Any) -> list[Any]:
    messages = prompt if isinstance(prompt, list) else []
    if isinstance(prompt, dict):
        numbered = [key for key in prompt if key.isdigit()]
        messages = [prompt[key] for key in sorted(numbered, key=int)] if numbered else [prompt]
    urls = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except ValueError:
                continue
        for part in content if isinstance(content, list) else []:
            if isinstance(part, dict) and part.get("type") == "image_url":
                image = part.get("image_url")
                if isinstance(image, dict) and "url" in image:
                    urls.append(image["url"])
    return urls


def proxy(spans: list[Json]) -> list[Json]:
    ordered = sorted(spans, key=lambda span: (span["sequence_id"], span["start_time"]))
    calls: list[Json] = []
    for span in ordered:
        call = _proxied(span["name"], span["attributes"])
        if call is None:
            continue
        told = call["metadata"]["response_id"]
        if told is None or all(told != one["triplet"]["metadata"]["response_id"] for one in calls):
            calls.append({"id": span["span_id"], "sequence": span["sequence_id"], "triplet": call})
    given: Json = {}
    for span in ordered:
        value = reward_of(span["name"], span["attributes"])
        if value is None:
            continue
        for one in reversed(calls):
            if one["sequence"] < span["sequence_id"] and one["id"] not in given:
                given[one["id"]] = float(value)
                break
    return [{**one["triplet"], "reward": given.get(one["id"])} for one in calls]


def _proxied(name: str, a: Json) -> Json | None:
    if name == "raw_gen_ai_request":
        prompt = _ids(a.get("llm.hosted_vllm.prompt_token_ids"))
        lists = _read(a.get("llm.hosted_vllm.response_token_ids"))
        response = _ids(lists[0]) if isinstance(lists, list) and lists else []
        if not response:
            choices = _read(a.get("llm.hosted_vllm.choices"))
            first = choices[0] if isinstance(choices, list) and choices else None
            response = _ids(first.get("token_ids")) if isinstance(first, dict) else []
    elif name == "litellm_request":
        prompt, response = _ids(a.get("prompt_token_ids")), _ids(a.get("response_token_ids"))
    else:
        return None
    if not prompt or not response:
        return None
    told = a.get("gen_ai.response.id") or a.get("llm.hosted_vllm.id")
    return {
        "prompt": {"token_ids": prompt},
        "response": {"token_ids": response},
        "reward": None,
        "metadata": {"response_id": told if isinstance(told, str) and told else None},
    }


def _read(value: Any) -> Any:
    try:
        return ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError):
        return value


def _ids(value: Any) -> list[int]:
    value = _read(value)
    return value if isinstance(value, list) and all(isinstance(item, int) for item in value) else []
