"""Shapes: what a trainer's row looks like, cut from native rows. One file per shape; importing this registers
them.

The shapes `triplets`, `transition` and `trajectory` are cut from converted traces instead.
"""

from trainer_export.shapes.base import SHAPES, Layout, Place, Shape
from trainer_export.shapes.miles import MILES
from trainer_export.shapes.native import NATIVE
from trainer_export.shapes.traced import TRACE_SHAPES, TraceShape
from trainer_export.shapes.trajectory import TRAJECTORY
from trainer_export.shapes.transition import TRANSITION
from trainer_export.shapes.triplets import TRIPLETS
from trainer_export.shapes.trl import TRL
from trainer_export.shapes.verl import VERL

__all__ = [
    "MILES",
    "NATIVE",
    "SHAPES",
    "TRACE_SHAPES",
    "TRAJECTORY",
    "TRANSITION",
    "TRIPLETS",
    "TRL",
    "VERL",
    "Layout",
    "Place",
    "Shape",
    "TraceShape",
    "layout_of",
]


def layout_of(name: str) -> Layout:
    """A shape of either kind."""
    return SHAPES[name] if name in SHAPES else TRACE_SHAPES[name]
