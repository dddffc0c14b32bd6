"""What the configuration adds to every body of SGLang's protocols."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """All off by default."""

    routing_replay: bool = False
    indexer_replay: bool = False
    lora_path: str | None = None
    """Sent as `lora_path`; None lets a chat client's own value pass."""
