"""Text and numbers that a database refuses: NUL and lone surrogates become U+FFFD, non-finite numbers their
names.
"""

import math
import re
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Storable as UTF-8 text."""
    return _UNSTORABLE.sub("�", text)


def clean_number(number: float) -> float | str:
    """NaN and the infinities have no JSON form."""
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def whole_number(value: Any) -> int | None:
    """Whole numbers as sent by JSON: numbers or decimal text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,20}", value.strip(), re.ASCII):
        return int(value)
    return None
