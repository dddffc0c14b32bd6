"""Events and rows of version 1."""

import math
from typing import Any

Json = dict[str, Any]


def events(source: list[Json]) -> Json:
    trimmed = [_event(event) for event in source]
    kept = []
    for at, event in enumerate(trimmed):
        later = [
            other["data"]["prompt_token_ids"]
            for other in trimmed[at + 1 :]
            if other["event_type"] == "model_request"
        ]
        if event["event_type"] == "model_request" and event["data"]["prompt_token_ids"] in later:
            continue
        kept.append(event)
    values = [event["data"]["value"] for event in kept if event["event_type"] == "reward"]
    last = values[-1] if values else None
    final = float(last) if type(last) in (int, float) else None
    made = [_triplet(event["data"]) for event in kept if event["event_type"] == "model_request"]
    triplets = [one for one in made if one is not None]
    if triplets:
        triplets[-1]["reward"] = final
    return {"triplet_events": kept, "triplets": triplets, "final_reward": final}


def _event(event: Json) -> Json:
    data = event["data"]
    if event["event_type"] == "model_request":
        data = _request(data)
    elif event["event_type"] == "reward":
        data = {"value": data.get("value"), **{k: data[k] for k in ("source", "reason") if k in data}}
    return {**event, "attempt_id": event.get("attempt_id", "0"), "data": data}


def _request(data: Json) -> Json:
    response = data.get("response")
    prompt, ids, log_probs = [], [], None
    if isinstance(response, list):
        for chunk in response:
            prompt = prompt or chunk.get("prompt_token_ids", [])
            for choice in chunk.get("choices", [])[:1]:
                ids = ids + choice.get("token_ids", [])
    elif isinstance(response, dict):
        choice = (response.get("choices") or [{}])[0]
        prompt = response.get("prompt_token_ids") or choice.get("prompt_token_ids", [])
        ids, log_probs = choice.get("token_ids", []), _log_probs(choice.get("logprobs"))
    server = data.get("server", {})
    made = {
        "prompt_token_ids": prompt,
        "response_token_ids": ids,
        "response_log_probs": log_probs,
        "server": {"model": server.get("model"), "version": server.get("version")},
    }
    made |= {key: data[key] for key in ("http_status", "status") if key in data}
    if isinstance(response, dict) and "error" in response:
        made["error"] = response["error"]
    return made


def _log_probs(given: Any) -> list[float] | None:
    if not given:
        return None
    values = given.get("token_logprobs")
    if "content" in given:
        values = [item.get("logprob") for item in given["content"]]
    if values is None or not all(type(one) in (int, float) and math.isfinite(one) for one in values):
        return None
    return [float(one) for one in values]


def _triplet(data: Json) -> Json | None:
    if data.get("status") == "error" or data.get("http_status", 0) >= 400 or not data["response_token_ids"]:
        return None
    return {
        "prompt": {"token_ids": data["prompt_token_ids"]},
        "response": {"token_ids": data["response_token_ids"], "log_probs": data["response_log_probs"]},
        "reward": None,
        "metadata": {"server": data["server"]},
    }


def rows(rollouts: list[Json], options: Json) -> Json:
    limits = options["max_prompt_length"], options["max_response_length"]
    by_turn = options["level"] == "transition"
    made: list[Json] = []
    counts = {"truncated": 0, "empty": 0, "unmerged": 0, "breaks": 0, "turns": 0}
    for rollout in sorted(rollouts, key=lambda one: (one["step"], one["sample_idx_in_step"])):
        turns = [
            (one["prompt"]["token_ids"], one["response"]["token_ids"], one["response"]["log_probs"])
            for one in rollout["triplets"]
        ]
        counts["turns"] += len(turns)
        groups = [[turn] for turn in turns] if by_turn else grouped(turns)
        counts["unmerged"] += len(groups) > 1
        counts["breaks"] += max(len(groups) - 1, 0)
        for index, group in enumerate(groups):
            row = _row(group, rollout["final_reward"], limits, counts)
            if row is not None:
                made.append({**row, "turn_index": index} if by_turn else row)
    if not made:
        raise RuntimeError("get_train_data_batch emitted zero training rows.")
    if any(row["log_probs"] is None for row in made):
        made = [{**row, "log_probs": None} for row in made]
    if by_turn:
        made = [{key: row[key] for key in row if key != "loss_mask"} for row in made]
    metrics = {
        "training/n_sample": len(made),
        "training/n_turns": counts["turns"],
        "training/n_truncated_sample": counts["truncated"],
        "training/n_skipped_empty_rows": counts["empty"],
    }
    if not by_turn:
        metrics["training/n_unmerged_rollouts"] = counts["unmerged"]
        metrics["training/n_trace_merge_mismatch_rows"] = min(counts["breaks"], 100)
    return {"rows": made, "metrics": metrics}


def grouped(turns: list[Any]) -> list[list[Any]]:
    groups: list[list[Any]] = []
    for turn in turns:
        context = groups[-1][-1][0] + groups[-1][-1][1] if groups else None
        if context is not None and turn[0][: len(context)] == context:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return groups


def _row(group: list[Any], final: Any, limits: tuple[int, int], counts: dict[str, int]) -> Json | None:
    prompt, response, log_probs = list(group[0][0]), list(group[0][1]), group[0][2]
    log_probs = None if log_probs is None else list(log_probs)
    mask, seen = [1] * len(response), len(prompt) + len(response)
    for later_prompt, later, given in group[1:]:
        extra = later_prompt[seen:]
        response, mask = response + extra + later, mask + [0] * len(extra) + [1] * len(later)
        if log_probs is None or given is None or len(given) != len(later):
            log_probs = None
        else:
            log_probs = log_probs + [0.0] * len(extra) + given
        seen = len(later_prompt) + len(later)
    if len(response) > limits[1]:
        counts["truncated"] += 1
        response, mask = response[: limits[1]], mask[: limits[1]]
        log_probs = None if log_probs is None else log_probs[: limits[1]]
    if log_probs is not None and len(log_probs) != len(response):
        log_probs = None
    if 1 not in mask:
        counts["empty"] += 1
        return None
    return {
        "prompt_ids": prompt[: limits[0]],
        "response_ids": response,
        "loss_mask": mask,
        "log_probs": log_probs,
        "is_drop": len(prompt) > limits[0],
        "reward": 0.0 if final is None else final,
        "reward_position": None if final is None else len(response) - 1,
    }
