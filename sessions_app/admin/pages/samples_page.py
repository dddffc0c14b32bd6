"""The samples of a session as they would be handed out now: rows, dropped leaves, and counts that add up."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import page, read_session, shown
from sessions_app.admin.pages.training import DroppedLine, RowLine, training_of
from sessions_app.insight.forest import load_leaf_tokens
from sessions_app.presentation.addresses import session_url


@dataclass(frozen=True, slots=True)
class SamplesPage:
    """Everything on the page."""

    session_id: str
    unavailable: str | None
    picker: str
    postprocessor: str
    rows: list[RowLine]
    dropped: list[DroppedLine]
    generated: int
    trained: int
    masked: dict[str, int]
    adds_up: bool
    """generated = trained + masked."""


@page
def samples_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """The page, or its twin."""
    session = read_session(request, session_id, "samples")
    training = training_of(session, load_leaf_tokens(session.id))
    value = SamplesPage(
        session_id=session.id.hex,
        unavailable=training.unavailable,
        picker=training.picker,
        postprocessor=training.postprocessor,
        rows=training.rows,
        dropped=training.dropped,
        generated=training.generated,
        trained=training.trained,
        masked=training.masked,
        adds_up=training.generated == training.trained + sum(training.masked.values()),
    )
    return shown(request, "samples.html", "Samples", value, session_url=session_url(session.id))
