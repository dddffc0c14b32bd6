"""Text cut into what may be shown as it is and what would be invisible, or would move other text, if it were.

Pure. Invariant: the pieces of a text, joined, are the text. Unseen are controls, formats (direction marks
and the like), surrogates, private and unassigned code points, and every separator but the plain blank.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_LAYOUT = frozenset("\n\t")
_BLANKS = {" ": "space", "\n": "newline", "\t": "tab", "\r": "return"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text of one kind."""

    text: str
    kind: str
    """`plain`, `unseen`, or with blanks marked also `space`, `newline`, `tab`, `return`."""

    @property
    def label(self) -> str:
        """The code point of an unseen character; else the text."""
        return f"U+{ord(self.text):04X}" if self.kind == "unseen" else self.text

    @property
    def name(self) -> str:
        """Unicode name of an unseen character, as far as it has one."""
        return unicodedata.name(self.text, "unnamed character") if self.kind == "unseen" else ""


def pieces(text: str, *, blanks: bool = False) -> Iterator[Piece]:
    """The pieces in order. `blanks`: white space is marked too; else tabs and line breaks are layout."""
    start = 0
    for at in _odd_places(text, blanks):
        if at > start:
            yield Piece(text[start:at], "plain")
        yield Piece(text[at], _BLANKS.get(text[at], "unseen") if blanks else "unseen")
        start = at + 1
    if start < len(text):
        yield Piece(text[start:], "plain")


def spelled_out(text: str) -> str:
    """The text with every unseen character as its code point; for places that take no markup."""
    return "".join(f"[{piece.label}]" if piece.kind == "unseen" else piece.text for piece in pieces(text))


def _odd_places(text: str, blanks: bool) -> Iterator[int]:
    if blanks:
        return (at for at, one in enumerate(text) if one in _BLANKS or not one.isprintable())
    if text.replace("\n", "").replace("\t", "").isprintable():
        return iter(())
    return (at for at, one in enumerate(text) if not one.isprintable() and one not in _LAYOUT)
