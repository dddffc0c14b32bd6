"""What a log may say of an error that nobody expected: its kind and where it arose, never its text, which can
quote the conversation (a database names the failing row).
"""

import traceback
from pathlib import Path

_FRAMES = 12


def whence(error: BaseException) -> str:
    """The kind of an error and its innermost frames, outermost first; causes behind it."""
    told = f"{type(error).__name__} at {_frames(error)}"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return told if cause is None else f"{told}; from {whence(cause)}"


def _frames(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
