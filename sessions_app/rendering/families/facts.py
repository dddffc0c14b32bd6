"""The fixed facts of the known families: what a served history needs at its seams, and how drift is told.

Invariant: facts only; no tokenizer is touched here. A family's template keeps earlier reasoning because of
its constants, which is why a request may not override them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_ALL_ROLES = frozenset({"assistant", "system", "tool", "user"})
_NO_SYSTEM = frozenset({"assistant", "tool", "user"})


class Boundary(Enum):
    """What happens between the served ids and the new messages."""

    CONCATENATE = "concatenate"
    NEWLINE_AFTER = "newline_after"
    """The model stops before the newline that the template prints after the boundary token: it is put
    back."""
    DROP_OPENER = "drop_opener"
    """The boundary token is both the stop token and the next opener: the new messages bring the right one."""


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """One row of the families' table."""

    name: str
    class_name: str
    """As shown in the text of a kwarg conflict."""
    append_roles: frozenset[str] = _ALL_ROLES
    boundary: Boundary = Boundary.CONCATENATE
    boundary_tokens: tuple[str, ...] = ()
    trailing: tuple[str, ...] = ()
    """Tokens that the comparator ignores at both tails."""
    assistant_prefix: str = ""
    """How an assistant segment starts in text; "" = nothing is classed as assistant text."""
    unsegmented: tuple[str, ...] = ()
    """Special tokens that stand inside a turn and separate nothing."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    tool_parser: str = ""
    """The one grammar that its calls are read by; "" = any may be named."""
    reasoning_parser: str = ""

    @property
    def max_trim_tokens(self) -> int:
        """Most served ids that the boundary rule may drop."""
        return 1 if self.boundary is Boundary.DROP_OPENER else 0


def _chatml(name: str, class_name: str, **changes: Any) -> FamilyFacts:
    facts: dict[str, Any] = {
        "boundary": Boundary.NEWLINE_AFTER,
        "boundary_tokens": ("<|im_end|>",),
        "trailing": ("\n",),
        "assistant_prefix": "<|im_start|>assistant",
        "constants": {"clear_thinking": False},
        "tool_parser": "qwen3",
        "reasoning_parser": "think",
    }
    return FamilyFacts(name, class_name, **{**facts, **changes})


def _kimi(name: str, class_name: str, **changes: Any) -> FamilyFacts:
    return FamilyFacts(
        name,
        class_name,
        **changes,
        assistant_prefix="<|im_assistant|>",
        unsegmented=("<|im_middle|>",),
        constants={"preserve_thinking": True},
        boundary_tokens=("<|im_end|>",),
    )


def _minimax(name: str, class_name: str) -> FamilyFacts:
    return _chatml(
        name,
        class_name,
        append_roles=_NO_SYSTEM,
        boundary_tokens=("[e~[",),
        assistant_prefix="]~b]ai",
        tool_parser="minimax-m2",
    )


_ROWS = (
    FamilyFacts("default", "TITOTokenizer"),
    _chatml("qwen3", "Qwen3TITOTokenizer"),
    _chatml("qwen35", "Qwen35TITOTokenizer", append_roles=_NO_SYSTEM, tool_parser="qwen3.5"),
    _chatml("qwennext", "QwenNextTITOTokenizer"),
    _chatml(
        "nemotron3",
        "Nemotron3TITOTokenizer",
        assistant_prefix="<|im_start|>assistant\n",
        constants={"truncate_history_thinking": False},
        tool_parser="qwen3.5",
    ),
    FamilyFacts(
        "glm47",
        "GLM47TITOTokenizer",
        boundary=Boundary.DROP_OPENER,
        boundary_tokens=("<|user|>", "<|observation|>"),
        trailing=("<|user|>", "<|observation|>"),
        assistant_prefix="<|assistant|>",
        constants={"clear_thinking": False},
        tool_parser="glm",
        reasoning_parser="think",
    ),
    _kimi("kimi25", "Kimi25TITOTokenizer"),
    _kimi("kimi26", "Kimi26TITOTokenizer", tool_parser="kimi-k2", reasoning_parser="think"),
    _minimax("minimax_m25", "MinimaxM25TITOTokenizer"),
    _minimax("minimax_m27", "MinimaxM27TITOTokenizer"),
)

FAMILIES: Mapping[str, FamilyFacts] = {facts.name: facts for facts in _ROWS}
