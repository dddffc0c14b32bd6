"""What the templates of the operator screens say about values."""

import re
from typing import Any
from uuid import UUID

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from sessions_app.history.causes import AttachKind, Cause
from sessions_app.json_text import text_of
from sessions_app.presentation import addresses, markup
from sessions_app.presentation.words import EVENT_KINDS, JOB_TONES, KIND_TONES, MASK_REASONS, STATES

register = template.Library()

MOST_CHARACTERS = 50_000
"""Of one message on the page of a node; the row of the message has all of them."""
_CELL = re.compile(r'(<t[dh] class="[^" ]+)[^"]*"')
"""The beginning of a list's cell; what follows its first class is the theme's, some 400 bytes a cell."""
_CHECKBOX = re.compile(r'class="[^"]* action-select"')

register.filter("prose", markup.prose)
register.filter("blanks", markup.blanks_shown)
register.filter("json_block", markup.json_block)
register.simple_tag(markup.progress_bar)


@register.filter
def kind(value: str | None) -> SafeString:
    """An attach kind with its meaning."""
    return (
        markup.explained(value, AttachKind(value).meaning, KIND_TONES[AttachKind(value)])
        if value
        else _none()
    )


@register.filter
def cause(value: str | None) -> SafeString:
    """A cause with its meaning."""
    return markup.explained(value, Cause(value).meaning) if value else _none()


@register.filter
def meaning(value: str) -> str:
    """A cause in words."""
    return Cause(value).meaning


@register.filter
def state(value: str) -> SafeString:
    """A record state with its meaning."""
    tone, told = STATES[value]
    return markup.explained(value, told, tone)


@register.filter
def event_kind(value: str) -> SafeString:
    """A kind of event with its meaning."""
    tone, told = EVENT_KINDS[value]
    return markup.explained(value, told, tone)


@register.filter
def job_state(value: str) -> SafeString:
    """A state of a job."""
    return markup.explained(value, value, JOB_TONES[value])


@register.filter
def mask_reason(value: str) -> str:
    """Why a sampled id is not trained, in words."""
    return MASK_REASONS.get(value, value)


@register.filter
def amount(value: float | None) -> SafeString | str:
    """A number with digits grouped; what is not known is said to be unknown."""
    if value is None:
        return format_html('<span class="t-none" title="not known">{}</span>', "unknown")
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:,.2g}"


@register.filter
def share(part: int, whole: int) -> str:
    """A part of a whole in per cent."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


@register.filter
def percent(rate: float) -> str:
    """A rate in per cent."""
    return f"{100 * rate:.3g} %"


@register.simple_tag
def session_address(session_id: UUID) -> str:
    """The page of a session."""
    return addresses.session_url(session_id)


@register.simple_tag
def node_address(session_id: str, seq: int) -> str:
    """The page of a node."""
    return addresses.node_url(UUID(session_id), seq)


@register.simple_tag
def node_link(session_id: str, seq: int | None, absent: str = "–") -> SafeString | str:
    """A link to a node."""
    if seq is None:
        return absent
    return markup.link(addresses.node_url(UUID(session_id), seq), f"node {seq}")


@register.simple_tag
def record_link(record_id: int | None, text: str = "") -> SafeString | str:
    """A link to a record."""
    if record_id is None:
        return "–"
    return markup.link(addresses.record_url(record_id), text or f"record {record_id}", f"record {record_id}")


@register.simple_tag
def rows_of(model: str, session_id: str, text: Any, **filters: Any) -> SafeString:
    """A number as a link to the rows that it counts."""
    return markup.link(addresses.list_url(model, session=session_id, **filters), text, "the rows it counts")


@register.filter
def opening(text: str) -> str:
    """As much of a text as a page of many messages holds."""
    return text[:MOST_CHARACTERS]


@register.filter
def is_cut(text: str) -> bool:
    """Whether `opening` leaves something out."""
    return len(text) > MOST_CHARACTERS


@register.filter
def compact(value: Any) -> str:
    """A value as JSON in one line; texts as they are."""
    return value if isinstance(value, str) else text_of(value)


@register.filter
def light(cell: SafeString) -> SafeString:
    """A cell of a list without the theme's classes: `operator.css` says once how cells look."""
    return mark_safe(_CHECKBOX.sub('class="action-select"', _CELL.sub(r'\1"', cell, count=1)))


def _none() -> SafeString:
    return format_html('<span class="t-none">{}</span>', "–")
