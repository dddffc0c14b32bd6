"""The built-in pickers, one per file; importing this package registers them."""

from trainer_export.samples.pickers.base import PICKERS, Picker
from trainer_export.samples.pickers.drop_retries import drop_retries
from trainer_export.samples.pickers.drop_superseded import drop_superseded
from trainer_export.samples.pickers.keep_all import keep_all
from trainer_export.samples.pickers.longest import longest
from trainer_export.samples.pickers.main_only import main_only

__all__ = ["PICKERS", "Picker", "drop_retries", "drop_superseded", "keep_all", "longest", "main_only"]
