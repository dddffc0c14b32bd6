"""What assembling depends on besides the leaf: the renderer's limit, settings, and how ids become text."""

from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.packing import Ids


@dataclass(frozen=True, slots=True)
class AssemblyRules:
    """The same for all leaves of a session."""

    decode: Callable[[Ids], str]
    """Text of ids, special tokens kept; called once per kept completion and once per observation between two.
    """
    max_trim_tokens: int = 0
    """Most ids a prompt may drop from the end of the completion before it."""
    max_seq_len: int | None = None
    """Most tokens of a sample; None = no limit."""
    r3_layers: int | None = None
    """Layers in a routed-experts row (TITO_R3_LAYERS)."""
    additional_r3: bool = False
    """Payloads hold only rows that were not held before (TITO_ADDITION_R3)."""
    replay: bool = True
    """False: samples carry no replay rows, whose payloads were not read."""
    debug_messages: bool = False
    """Put the messages of the leaf's own turn into the sample (TITO_DEBUG_MESSAGES)."""
