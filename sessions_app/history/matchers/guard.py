"""What holds for every matcher's verdict, built-in or custom: a bool, or an error of the contract."""

from collections.abc import Callable
from typing import Any

from sessions_app.errors import MatcherContract, MatcherRaised
from sessions_app.history.matchers.base import Message

Predicate = Callable[[Message, Message], Any]


def verdict(predicate: Predicate, stored: Message, replayed: Message) -> bool:
    """The predicate's answer. Raises MatcherRaised if it raises, MatcherContract if it is no bool."""
    try:
        answer = predicate(stored, replayed)
    except Exception as error:
        raise MatcherRaised from error
    if type(answer) is not bool:
        raise MatcherContract(answer)
    return answer
