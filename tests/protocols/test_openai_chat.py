"""OpenAI chat requests: what is read of them beside the messages as they are."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.errors import InvalidMessages
from sessions_app.protocols.openai_chat import CHAT
from tests.protocols.incoming import incoming, result

SENT = '{"role": "developer", "content": "Help.", "name": "d"}'
BODY = '{"messages": [' + SENT + ', {"role":"user","content":"q"}]}'
FED = [{"role": "system", "content": "Help.", "name": "d"}, {"role": "user", "content": "q"}]


@pytest.mark.parametrize("policy", ["tree", "rollback"])
def test_a_developer_is_canonically_the_system_and_stays_in_the_sidecar(policy: str) -> None:
    request = CHAT.read(incoming(BODY, policy=policy))
    assert request.messages == FED
    assert [json.loads(request.texts.text(index)) for index in range(2)] == FED
    assert request.sidecars == {0: f"[{SENT}]"}


def test_policy_linear_stores_it_as_sent() -> None:
    request = CHAT.read(incoming(BODY, policy="linear"))
    assert request.messages == FED
    assert request.texts.text(0) == SENT
    assert not request.sidecars


def test_on_the_references_path_the_template_decides() -> None:
    arrived = incoming(BODY)
    arrived = replace(arrived, arrival=replace(arrived.arrival, reference=True))
    assert CHAT.read(arrived).messages[0]["role"] == "developer"


@pytest.mark.parametrize("message", ['{"content": "x"}', '{"role": null}', '{"role": ""}', '{"role": 3}'])
def test_only_on_the_references_path_may_a_message_lack_its_role(message: str) -> None:
    arrived = incoming(f'{{"messages": [{message}]}}')
    with pytest.raises(InvalidMessages, match=r"messages\[0\] has no role"):
        CHAT.read(arrived)
    reference = replace(arrived, arrival=replace(arrived.arrival, reference=True))
    assert CHAT.read(reference).messages == [json.loads(message)]


CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("message", "finish", "told"),
    [
        (CALLING, "length", "tool_calls"),
        (CALLING, "stop", "tool_calls"),
        ({"role": "assistant", "content": "a"}, "length", "length"),
        ({"role": "assistant", "content": "a"}, "stop", "stop"),
        ({"role": "assistant", "content": "a"}, "content_filter", "content_filter"),
        ({"role": "assistant", "content": "a"}, "abort", "stop"),
        ({"role": "assistant", "content": "a"}, None, "stop"),
    ],
)
def test_the_reason_is_one_that_clients_know_and_calls_come_first(
    message: dict[str, Any], finish: str | None, told: str
) -> None:
    request, turn = CHAT.read(incoming(BODY)), result(message, finish=finish)
    assert json.loads(CHAT.reply(turn, request))["choices"][0]["finish_reason"] == told
    chunk = next(CHAT.events(turn, request)).removeprefix(b"data: ")
    assert json.loads(chunk)["choices"][0]["finish_reason"] == told


def test_on_the_references_path_the_reason_is_the_engines() -> None:
    arrived = incoming(BODY)
    request = CHAT.read(replace(arrived, arrival=replace(arrived.arrival, reference=True)))
    reply = CHAT.reply(result(CALLING, finish="length"), request)
    assert json.loads(reply)["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("body", ['{"messages": "x"}', '{"messages": null}', "{}"])
def test_messages_that_are_no_list_are_refused_in_the_gateways_words(body: str) -> None:
    with pytest.raises(InvalidMessages, match=r"^messages must be a list$"):
        CHAT.read(incoming(body))
