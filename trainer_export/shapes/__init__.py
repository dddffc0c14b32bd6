"""Shapes: what a trainer's row looks like, cut from native rows. One file per shape; importing this registers
them.

The shapes `triplets`, `transition` and `trajectory` come from traces, not from native rows.
"""

from trainer_export.shapes.base import SHAPES, Place, Shape
from trainer_export.shapes.miles import MILES
from trainer_export.shapes.native import NATIVE
from trainer_export.shapes.trl import TRL
from trainer_export.shapes.verl import VERL

__all__ = ["MILES", "NATIVE", "SHAPES", "TRL", "VERL", "Place", "Shape"]
