"""Custom hooks for the tests, found by dotted path."""

import copy
from typing import Any


def newest_first(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return sorted(leaves, key=lambda sample: -sample.metadata["leaf"]["node_id"])


def as_generator(leaves: list[Any], session_metadata: dict[str, Any]) -> Any:
    return (sample for sample in leaves)


def keep_none(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return []


def twice(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return [leaves[0], leaves[0]]


def clone(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return [copy.deepcopy(leaves[0])]


def boom(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    raise RuntimeError("picker exploded")


def nothing(leaves: list[Any], session_metadata: dict[str, Any]) -> None:
    return None


def number(leaves: list[Any], session_metadata: dict[str, Any]) -> int:
    return 5


def numbers(leaves: list[Any], session_metadata: dict[str, Any]) -> list[int]:
    return [5]


def identity(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return samples


def key_error(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    raise KeyError("post")


def drop_all(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return []


def negative_mask(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    for sample in samples:
        sample.loss_mask = [-1] * sample.response_length
    return samples


def short_mask(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    samples[0].loss_mask = [1]
    return samples


def long_logprobs(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    samples[0].rollout_log_probs = [0.0] * (samples[0].response_length + 1)
    return samples


def endless_response(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    samples[0].response_length = 10**6
    return samples


def list_mask(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    for sample in samples:
        sample.loss_mask = [0, *[1] * (sample.response_length - 1)]
        sample.metadata["seen"] = list(session_metadata)
    return samples


class Callable:
    def __call__(self, leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
        return leaves


class AsyncCallable:
    async def __call__(self, leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
        return leaves


instance = Callable()
async_instance = AsyncCallable()


async def async_hook(leaves: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    return leaves


async def async_generator(leaves: list[Any], session_metadata: dict[str, Any]) -> Any:
    yield leaves


def hidden_coroutine(leaves: list[Any], session_metadata: dict[str, Any]) -> Any:
    return async_hook(leaves, session_metadata)


NOT_CALLABLE = 3


def odd_status(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
    for sample in samples:
        sample.status = session_metadata["agent"]["status"]
    return samples
