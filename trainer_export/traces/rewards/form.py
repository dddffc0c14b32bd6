"""What the forms of a reward share: the mark for "recorded in another form, ask the next one"."""

from enum import Enum
from typing import Final


class _Mark(Enum):
    NOT_THIS_FORM = "not this form"


NOT_THIS_FORM: Final = _Mark.NOT_THIS_FORM
