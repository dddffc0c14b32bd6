"""What one span knows about a call, read through all dialects."""

from dataclasses import dataclass
from typing import Any

from trainer_export.traces.attributes import unflatten
from trainer_export.traces.dialects.logprobs import logprobs
from trainer_export.traces.dialects.messages import prompt_messages, response_messages
from trainer_export.traces.dialects.recognition import is_failed
from trainer_export.traces.dialects.response_ids import response_id
from trainer_export.traces.dialects.token_ids import prompt_ids, response_ids
from trainer_export.traces.span import Attributes, Span


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One span read as a call; whatever it does not know is empty."""

    span: Span
    response_id: str | None
    prompt_ids: list[int]
    response_ids: list[int]
    logprobs: list[float] | None
    prompt: Any
    response: Any
    failed: bool

    @property
    def has_tokens(self) -> bool:
        """Both id lists are known."""
        return bool(self.prompt_ids) and bool(self.response_ids)

    @property
    def richness(self) -> tuple[bool, bool, bool, int]:
        """Which of several records of a call to trust first."""
        return (
            self.has_tokens,
            self.logprobs is not None,
            self.prompt is not None,
            len(self.span.attributes),
        )


def facts_of(span: Span) -> CallFacts:
    """Never raises."""
    attributes = span.attributes
    return CallFacts(
        span=span,
        response_id=response_id(attributes),
        prompt_ids=prompt_ids(attributes),
        response_ids=response_ids(attributes),
        logprobs=logprobs(attributes),
        prompt=prompt_messages(attributes),
        response=response_messages(attributes),
        failed=is_failed(span),
    )


def request_metadata(attributes: Attributes) -> Any:
    """`gen_ai.request.…` nested; None when there is nothing."""
    return _nested(attributes, "gen_ai.request.")


def response_metadata(attributes: Attributes) -> Any:
    """`gen_ai.response.…` nested; None when there is nothing."""
    return _nested(attributes, "gen_ai.response.")


def _nested(attributes: Attributes, start: str) -> Any:
    return (
        unflatten({key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)})
        or None
    )
