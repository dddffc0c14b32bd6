"""What happened in one turn, and the sums over all of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

_PLAIN = frozenset({"", "root", "append"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply, from its `usage` and the X-Tito headers beside it."""

    attach: str
    """How its node hangs in the tree; "" = it was not recorded."""
    cause: str
    """Why it was no plain append; "" = it was one."""
    healed: bool
    """Its prompt begins with stored ids."""
    prompt_tokens: int
    reused_tokens: int
    """Ids of the prompt that were stored ones."""
    generated_tokens: int
    seconds: float

    @classmethod
    def of(
        cls, headers: Mapping[str, str], prompt_tokens: int, generated_tokens: int, seconds: float
    ) -> "Turn":
        """From the headers of a reply."""
        return cls(
            attach=headers.get("x-tito-attach", ""),
            cause=headers.get("x-tito-cause", ""),
            healed="x-tito-parent" in headers,
            prompt_tokens=prompt_tokens,
            reused_tokens=int(headers.get("x-tito-reused-tokens", 0)),
            generated_tokens=generated_tokens,
            seconds=seconds,
        )


@dataclass(slots=True)
class Rerendering:
    """What a fresh render of the same requests would have been, compared with what was served."""

    paths: int = 0
    """Root-to-leaf paths compared."""
    drifted_paths: int = 0
    drifted_turns: int = 0
    """Turns whose prompt would have had other ids."""
    sampled_tokens: int = 0
    misplaced_tokens: int = 0
    """Sampled ids from the first difference on: not in the render, or in another context than their own."""
    text_differences: int = 0
    """Entries of `tito_session_mismatch`: places where even the text differs."""

    def add(self, other: "Rerendering") -> None:
        """Sum up."""
        self.paths += other.paths
        self.drifted_paths += other.drifted_paths
        self.drifted_turns += other.drifted_turns
        self.sampled_tokens += other.sampled_tokens
        self.misplaced_tokens += other.misplaced_tokens
        self.text_differences += other.text_differences


@dataclass(slots=True)
class Totals:
    """Sums over all runs."""

    sessions: int = 0
    turns: list[Turn] = field(default_factory=list)
    rerendering: Rerendering = field(default_factory=Rerendering)
    errors: Counter[str] = field(default_factory=Counter)
    """Failed turns and requests, by what they failed with."""
    seconds: float = 0.0

    @property
    def branches(self) -> dict[str, int]:
        """Turns that were neither an append nor a first turn: how often each kind and cause occurred."""
        odd = [turn for turn in self.turns if turn.attach not in _PLAIN]
        return dict(Counter(f"{turn.attach} ({turn.cause})" for turn in odd).most_common())

    @property
    def unrecorded(self) -> int:
        """Replies that reached the agent but not the tree."""
        return sum(not turn.attach for turn in self.turns)

    @property
    def healed(self) -> int:
        """Turns that continued stored ids."""
        return sum(turn.healed for turn in self.turns)

    @property
    def prompt_tokens(self) -> int:
        """Ids fed, which is what rendering every request would have tokenised."""
        return sum(turn.prompt_tokens for turn in self.turns)

    @property
    def reused_tokens(self) -> int:
        """Stored ids fed again."""
        return sum(turn.reused_tokens for turn in self.turns)

    @property
    def generated_tokens(self) -> int:
        """Sampled ids."""
        return sum(turn.generated_tokens for turn in self.turns)

    @property
    def median_turn_ms(self) -> float:
        """Request to reply, generation included."""
        return median(turn.seconds for turn in self.turns) * 1000 if self.turns else 0.0
