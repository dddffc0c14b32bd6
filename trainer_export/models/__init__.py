"""Tables of exports. Rows are written by the services of `trainer_export`; everything else reads."""

from trainer_export.models.frozen import FrozenSession
from trainer_export.models.handout import Handout
from trainer_export.models.job import ExportJob, ExportShard
from trainer_export.models.sample import Sample
from trainer_export.models.trace import Span, SpanOrigin, Trace, TracedSession, WaitingSpan

__all__ = [
    "ExportJob",
    "ExportShard",
    "FrozenSession",
    "Handout",
    "Sample",
    "Span",
    "SpanOrigin",
    "Trace",
    "TracedSession",
    "WaitingSpan",
]
