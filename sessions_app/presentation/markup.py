"""Values as HTML: escaped, with nothing hidden in them.

Invariant: no text of a conversation reaches a page but through `prose`, `blanks_shown` or Django's own
escaping.
"""

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from sessions_app.insight.glyphs import Piece, pieces
from sessions_app.insight.json_layout import laid_out

_BLANK_CLASSES = {"space": "g-sp", "newline": "g-nl", "tab": "g-tab", "return": "g-cr"}


def prose(text: str) -> SafeString:
    """Text to read: line breaks stay, what is invisible or turns text around becomes a labelled mark."""
    return mark_safe("".join(_piece(piece) for piece in pieces(text)))


def blanks_shown(text: str) -> SafeString:
    """Text to compare: white space is marked too, and stays real text that can be searched and copied."""
    return mark_safe("".join(_piece(piece) for piece in pieces(text, blanks=True)))


def _piece(piece: Piece) -> str:
    if piece.kind == "plain":
        return escape(piece.text)
    if piece.kind == "unseen":
        return format_html('<span class="g-odd" title="{}">{}</span>', piece.name, piece.label)
    return format_html('<i class="{}">{}</i>', _BLANK_CLASSES[piece.kind], piece.text)


def json_block(text: str | None) -> SafeString:
    """Stored JSON text, laid out, every value spelled as it is stored."""
    if text is None:
        return format_html('<span class="t-none">{}</span>', "none stored")
    return format_html('<pre class="t-json" tabindex="0">{}</pre>', prose(laid_out(text)))


def text_block(text: str) -> SafeString:
    """Text of any length."""
    return format_html('<pre class="t-text" tabindex="0">{}</pre>', prose(text))


def hex_digest(data: bytes | memoryview | None) -> SafeString:
    """A digest in full, to be copied."""
    if data is None:
        return format_html('<span class="t-none">{}</span>', "none")
    return format_html("<code>{}</code>", bytes(data).hex())


def link(url: str, text: object, title: str = "") -> SafeString:
    """A link whose text is escaped."""
    return format_html('<a class="t-link" href="{}" title="{}">{}</a>', url, title, text)


def progress_bar(done: int, total: int | None) -> SafeString:
    """A bar with its numbers."""
    if total is None:
        return format_html('<span class="t-none">{}</span>', "not begun")
    told = f"{done} of {total}"
    return format_html('<progress max="{}" value="{}">{}</progress> {}', total or 1, done, told, told)


def explained(value: str | None, meaning: str, tone: str = "") -> SafeString:
    """A word of a closed list with its meaning as a tool tip; colour only repeats what the word says."""
    if not value:
        return format_html('<span class="t-none">{}</span>', "–")
    return format_html('<span class="t-word t-{}" title="{}">{}</span>', tone or "plain", meaning, value)
