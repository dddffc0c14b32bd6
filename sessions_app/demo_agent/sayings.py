"""What the users of the demo agent say. The same number gives the same conversation."""

import random

SYSTEM = "You are a careful assistant. Use the tools for sums and files; never guess."
SUBAGENT_SYSTEM = "You are a checker. Recompute what you are given with the tools and report in one line."

_SAYINGS = (
    "What is {a} * {b}?",
    "Which files are in ./notes? And what is {a} + {b}?",
    "Add {a} and {b}, then list the files in ./data.",
    "What is {a} - {b}, what is {b} * {c}, and what is {a} + {c}?",
    "List the files here, please.",
    "Thank you. Say in one sentence what you did.",
    "Is {a} * {b} more than {b} * {c}?",
    "Which folders are in the working folder?",
)


def sayings(number: int, count: int) -> list[str]:
    """What the user of run `number` says, turn by turn."""
    chance = random.Random(number)
    return [_filled(text, chance) for text in chance.sample(_SAYINGS, k=min(count, len(_SAYINGS)))]


def _filled(text: str, chance: random.Random) -> str:
    return text.format(a=chance.randint(2, 99), b=chance.randint(2, 99), c=chance.randint(2, 99))
