"""What operators do with several sessions at once: chosen in the list, confirmed by a POST, logged for each.

Invariant: no action changes a checkpoint, a message or a place in the tree.
"""

from collections.abc import Sequence
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from sessions_app.admin.pages.actions import SESSION_ACTIONS, Question, log
from sessions_app.admin.pages.serving import Missing, page, shown
from sessions_app.admin.roles import may_operate
from sessions_app.models import Session
from sessions_app.presentation.addresses import list_url, many_url, session_url

ACTIONS = ("close", "reassemble")
MOST = 200
"""Sessions of one action."""


def asked_for(request: HttpRequest, action: str, chosen: QuerySet) -> HttpResponse | None:
    """The way from the list to the question about the chosen sessions."""
    ids = [session_id.hex for session_id in chosen.values_list("pk", flat=True)[: MOST + 1]]
    if len(ids) > MOST:
        messages.error(request, f"At most {MOST} sessions at once.")
        return None
    return HttpResponseRedirect(many_url(action, ",".join(ids)))


@page
def many_page(request: HttpRequest, action: str) -> HttpResponse:
    """Asks about the sessions of `?ids=`, then does it."""
    if action not in ACTIONS:
        raise Missing(f"There is nothing called {action!r} to do with sessions.")
    sessions = _sessions(request.GET.get("ids", ""))
    if not may_operate(request.user):
        raise PermissionDenied
    if request.method == "POST":
        return _each(request, action, sessions)
    wanted = SESSION_ACTIONS[action]
    title = f"{wanted.button}: {len(sessions)} session{'' if len(sessions) == 1 else 's'}"
    question = Question(title, wanted.text, wanted.button)
    about = [(session.id.hex, session_url(session.id)) for session in sessions]
    return shown(request, "confirm.html", question.title, question, about=about, back=list_url("session"))


def _sessions(text: str) -> list[Session]:
    try:
        ids = [UUID(one) for one in text.split(",")[:MOST]]
    except ValueError:
        raise Missing("'ids' must be session ids with commas between them.") from None
    found = list(Session.objects.select_related("profile").filter(pk__in=ids).order_by("-created_at"))
    if not found:
        raise Missing("None of these sessions is there. Retention may have removed them.")
    return found


def _each(request: HttpRequest, action: str, sessions: Sequence[Session]) -> HttpResponse:
    done = 0
    with transaction.atomic():
        for session in sessions:
            told = SESSION_ACTIONS[action].perform(session)
            if told is not None:
                log(request, session, told)
                done += 1
    others = len(sessions) - done
    messages.success(request, f"Done for {done}." + (f" {others} were so already." if others else ""))
    return HttpResponseRedirect(list_url("session"))
