"""Writers: rows of a shape to one local file. One file per format; importing this registers them.

Invariant: the same rows give the same bytes. A writer holds no more rows than its buffer; what it writes is
no file anybody should read until `close` has returned.
"""

from trainer_export.writers.base import WRITERS, Writer, open_writer
from trainer_export.writers.jsonl import JsonlWriter
from trainer_export.writers.parquet import ParquetWriter
from trainer_export.writers.safetensors import SafetensorsWriter

__all__ = ["WRITERS", "JsonlWriter", "ParquetWriter", "SafetensorsWriter", "Writer", "open_writer"]
