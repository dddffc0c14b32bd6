"""Engines' refusals in the words of the protocols."""

import pytest

from sessions_app.errors import NotReady, UpstreamStatus
from sessions_app.protocols.upstream import own_error

OVERFLOWS = [
    b'{"object":"error","message":"This model\'s maximum context length is 64 tokens. However, 99 are"}',
    b'{"error":{"message":"Token count exceeds the model\'s maximum context length of 64 tokens."}}',
    b'{"message":"The input (99 tokens) is longer than the model\'s context length (64 tokens)."}',
    b'{"detail":"prompt too long: max_model_len=64"}',
]


def refused(status: int, body: bytes, **headers: str) -> UpstreamStatus:
    error = UpstreamStatus(status, body, headers)
    error.prompt_tokens = 99
    return error


@pytest.mark.parametrize("body", OVERFLOWS)
def test_a_prompt_that_is_too_long_is_told_in_the_standard_text(body: bytes) -> None:
    told = own_error(refused(400, body))
    assert (told.status, told.code, told.retryable) == (400, "context_length_exceeded", False)
    assert str(told) == (
        "This model's maximum context length is 64 tokens. However, your prompt contains 99 input tokens, "
        "which leaves no room for output tokens. Please reduce the length of the messages."
    )


def test_an_overflow_without_numbers_has_the_words_that_clients_know() -> None:
    told = own_error(refused(400, b"exceeds the context window"))
    assert "maximum context length" in str(told)


@pytest.mark.parametrize(
    ("status", "body", "retryable", "text"),
    [
        (400, b'{"error": {"message": "bad temperature"}}', False, "bad temperature"),
        (429, b'{"message": "slow down"}', True, "slow down"),
        (500, b"<html>", True, "engine answered status 500"),
        (503, b'{"detail": "full"}', True, "full"),
    ],
)
def test_other_answers_keep_status_class_and_message(
    status: int, body: bytes, retryable: bool, text: str
) -> None:
    told = own_error(refused(status, body, **{"retry-after": "7"}))
    assert (told.status, told.code, told.retryable, told.retry_after_s) == (
        status,
        "upstream_status",
        retryable,
        7,
    )
    assert text in str(told)


def test_errors_of_ours_stay_as_they_are() -> None:
    error = NotReady("x")
    assert own_error(error) is error
