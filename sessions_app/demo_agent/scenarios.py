"""How a run goes. Each scenario is what real harnesses do to a server, on purpose or not."""

from collections.abc import Awaitable, Callable

from sessions_app.demo_agent.agent import Conversation
from sessions_app.demo_agent.sayings import SUBAGENT_SYSTEM

Scenario = Callable[[Conversation, list[str]], Awaitable[None]]


async def straight(talk: Conversation, sayings: list[str]) -> None:
    """Nothing special happens."""
    for text in sayings:
        await talk.say(text)


async def retry(talk: Conversation, sayings: list[str]) -> None:
    """A reply is lost on its way to the agent, which sends the same request again and goes on from there."""
    await straight(talk, sayings[:-1])
    talk.messages.append({"role": "user", "content": sayings[-1]})
    await talk.ask()
    talk.messages.pop()
    await talk.say(sayings[-1])


async def edit(talk: Conversation, sayings: list[str]) -> None:
    """The user goes back and asks something else in the middle of the conversation."""
    await straight(talk, sayings)
    asked = [at for at, message in enumerate(talk.messages) if message["role"] == "user"]
    branch = talk.branch(keep=asked[1])
    await branch.say(f"Something else: {sayings[0]}")
    await branch.say(sayings[-1])


async def subagent(talk: Conversation, sayings: list[str]) -> None:
    """A sub-agent with a prompt of its own works on the same session; then the main agent goes on."""
    await straight(talk, sayings[:2])
    helper = talk.subagent(SUBAGENT_SYSTEM)
    await helper.say(f"Check this: {sayings[0]}")
    await talk.say(f"The checker says: {helper.messages[-1].get('content') or 'nothing'}")
    await straight(talk, sayings[2:])


SCENARIOS: tuple[Scenario, ...] = (straight, retry, edit, subagent)
"""Taken in turn, run by run."""


def scenario_of(number: int) -> Scenario:
    """The scenario of a run."""
    return SCENARIOS[number % len(SCENARIOS)]
