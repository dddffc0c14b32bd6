"""An agent as people write them: the official SDK, a growing list of messages, tools between the turns."""

import time
from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI

from sessions_app.demo_agent.tools import DEFINITIONS, Toolbox
from sessions_app.demo_agent.totals import Turn

Message = dict[str, Any]

_MOST_ROUNDS = 4
"""Generations for one user message; a model that calls tools for ever is stopped there."""


class Conversation:
    """One list of messages. Several may share a session: sub-agents do."""

    def __init__(self, client: AsyncOpenAI, toolbox: Toolbox, system: str, turns: list[Turn]) -> None:
        self.messages: list[Message] = [{"role": "system", "content": system}]
        self._client = client
        self._toolbox = toolbox
        self._turns = turns

    async def say(self, text: str) -> None:
        """Let the user say something, and the assistant work until it has no more calls."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(_MOST_ROUNDS):
            reply = await self.ask()
            self.messages.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                return
            self.messages += [self._result(call) for call in calls]

    async def ask(self) -> Message:
        """Send the whole history; the reply, which is not added to it."""
        begun = time.perf_counter()
        raw = await self._client.chat.completions.with_raw_response.create(
            model="default",
            messages=self.messages,  # type: ignore[arg-type]
            tools=DEFINITIONS,  # type: ignore[arg-type]
        )
        completion = raw.parse()
        self._turns.append(_turn(raw.headers, completion.usage, time.perf_counter() - begun))
        return completion.choices[0].message.model_dump(exclude_none=True)

    def branch(self, keep: int) -> "Conversation":
        """A conversation on the same session that begins with the first messages of this one."""
        other = Conversation(self._client, self._toolbox, "", self._turns)
        other.messages = self.messages[:keep]
        return other

    def subagent(self, system: str) -> "Conversation":
        """A conversation with a prompt of its own on the same session."""
        return Conversation(self._client, self._toolbox, system, self._turns)

    def _result(self, call: Mapping[str, Any]) -> Message:
        function = call["function"]
        result = self._toolbox.run(function["name"], function["arguments"])
        return {"role": "tool", "tool_call_id": call["id"], "content": result}


def _turn(headers: Mapping[str, str], usage: Any, seconds: float) -> Turn:
    prompt, generated = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    return Turn.of(headers, prompt, generated, seconds)
