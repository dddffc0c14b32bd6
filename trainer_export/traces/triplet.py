"""The outcome of every adapter: prompt, response, reward and what is known about them."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Triplet:
    """One call as a training step."""

    prompt: dict[str, Any]
    """At least `token_ids`; the list is empty when the trace has none."""
    response: dict[str, Any]
    """At least `token_ids`."""
    reward: Any
    """A number as recorded, None when no reward was matched. 0.0 is a reward."""
    metadata: dict[str, Any]

    def with_reward(self, reward: Any) -> "Triplet":
        """The same step with another reward."""
        return replace(self, reward=reward)

    def to_json(self) -> dict[str, Any]:
        """The reference's layout."""
        return {
            "prompt": self.prompt,
            "response": self.response,
            "reward": self.reward,
            "metadata": self.metadata,
        }
