"""Spans of the LLM proxy."""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters.better import COMPAT, convert_better, is_better
from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import SPANS, adapter
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.proxied import proxied

NAME = "LlmProxyTraceToTriplet"

_DEFAULTS = {"mode": COMPAT}


@adapter(NAME, SPANS)
def convert(source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets in sequence order; no spans, no triplets."""
    if is_better(options):
        return convert_better(NAME, source, options)
    read_options(NAME, options, _DEFAULTS)
    return [triplet.to_json() for triplet in proxied(parse_spans(source)).triplets]
