"""The adapters by the names of the reference. Importing this package registers them all."""

from trainer_export.traces.adapters import llm_proxy, messages, trees, v1_events, v1_rows
from trainer_export.traces.adapters.registry import ADAPTERS, Adapter

__all__ = ["ADAPTERS", "Adapter", "llm_proxy", "messages", "trees", "v1_events", "v1_rows"]
