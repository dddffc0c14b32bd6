"""What operators do: each asked for on a page of its own, confirmed by a POST, and kept in the audit log.

Invariant: no action changes a checkpoint or a place in the tree. One changes messages: it empties them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from sessions_app.admin.pages import training
from sessions_app.admin.pages.serving import Missing, node_seq, page, session_of, shown
from sessions_app.admin.roles import OPERATE, PURGE
from sessions_app.history.roots import MAIN, SIDE, SUBAGENT
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.models import Node, Session
from sessions_app.presentation.addresses import node_url, session_url
from sessions_app.store import roots, sessions
from trainer_export.purging import NotPurged, purge_session

ROOT_CLASSES = (MAIN, SUBAGENT, SIDE)


@dataclass(frozen=True, slots=True)
class Question:
    """What a confirmation page asks."""

    title: str
    text: str
    button: str
    choices: tuple[str, ...] = ()
    """Values to choose from, where the action takes one."""
    chosen: str | None = None
    asked: str | None = None
    """What is to be typed in, where the action takes something that is."""


@dataclass(frozen=True, slots=True)
class SessionAction:
    """Something to do with a session."""

    title: str
    text: str
    button: str
    perform: Callable[[Session], str | None]
    """Does it; what was done for the log, or None where there was nothing to do. Raises NotNow."""
    permission: str = OPERATE


class NotNow(Exception):
    """It cannot be done as things are; the text says why."""


def _close(session: Session) -> str | None:
    return "closed the session" if settled(sessions.close(ORM, session.id)) else None


def _revoke(session: Session) -> str | None:
    if session.key_hash is None or not settled(sessions.replace_key(ORM, session.id, None)):
        return None
    return "revoked the session's key"


def _reassemble(session: Session) -> str | None:
    training.forget(session)
    return "asked for the samples to be assembled again"


def _purge(session: Session) -> str | None:
    with connection.cursor() as cursor:
        try:
            return "purged the session's text" if purge_session(cursor, session.id) else None
        except NotPurged as reason:
            raise NotNow(str(reason)) from None


SESSION_ACTIONS = {
    "close": SessionAction(
        "Close the session",
        "It serves no more turns; a reply in flight is kept beside the tree. What is stored stays as it is.",
        "Close",
        _close,
    ),
    "revoke-key": SessionAction(
        "Revoke the session's key",
        "Agents that hold the key can use the session no longer. The admin token still opens it.",
        "Revoke",
        _revoke,
    ),
    "reassemble": SessionAction(
        "Assemble the samples again",
        "Forgets what this process assembled for its pages. Nothing is handed out.",
        "Assemble",
        _reassemble,
    ),
    "purge-text": SessionAction(
        "Purge the session's text for good",
        "Messages, replies, tools, differences and attributes of spans are emptied. Token ids, logprobs and "
        "the tree stay, so the session can still be exported; whoever has the tokenizer can read the ids. "
        "Exported files and backups are not touched. This cannot be taken back.",
        "Purge the text",
        _purge,
        PURGE,
    ),
}


@page
def session_action_page(request: HttpRequest, session_id: str, action: str) -> HttpResponse:
    """Asks, then does."""
    session = session_of(session_id)
    if action not in SESSION_ACTIONS:
        raise Missing(f"There is nothing called {action!r} to do with a session.")
    wanted = SESSION_ACTIONS[action]
    question = Question(wanted.title, wanted.text, wanted.button)
    back = session_url(session.id)
    return confirmed(
        request, question, back, session, lambda _: wanted.perform(session), permission=wanted.permission
    )


@page
def root_class_page(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """Asks for the class of a root, then sets it."""
    session = session_of(session_id)
    node = Node.objects.filter(session=session, seq=node_seq(session, seq), parent_seq__isnull=True).first()
    if node is None:
        raise Missing(f"There is no root {seq} in session {session.id.hex}.")
    question = Question(
        f"Class root {seq}",
        f"It is taken for {node.root_class or 'nothing'}: {node.root_evidence or 'no evidence is kept'}. "
        "A class is a label for pickers and screens; neither matching nor ids change.",
        "Set",
        ROOT_CLASSES,
        node.root_class,
    )

    def perform(root_class: str) -> str | None:
        evidence = f"set by {request.user.get_username()}"
        if not settled(roots.overrule(ORM, session.id, seq, root_class, evidence)):
            return None
        return f"classed root {seq} as {root_class} (was {node.root_class})"

    return confirmed(request, question, node_url(session.id, seq), session, perform)


def confirmed(
    request: HttpRequest,
    question: Question,
    back: str,
    row: Model,
    perform: Callable[[str], str | None],
    *,
    permission: str = OPERATE,
) -> HttpResponse:
    """The question; on POST the act, its log entry, and the way back."""
    if not request.user.has_perm(permission):
        raise PermissionDenied
    if request.method != "POST":
        return shown(request, "confirm.html", question.title, question, back=back)
    choice = request.POST.get("choice", "")
    if question.choices and choice not in question.choices:
        raise Missing(f"{choice!r} is not one of {', '.join(question.choices)}.")
    try:
        with transaction.atomic():
            done = perform(choice)
            if done is not None:
                log(request, row, done)
    except NotNow as reason:
        messages.error(request, str(reason))
    else:
        _tell(request, done)
    return HttpResponseRedirect(back)


def _tell(request: HttpRequest, done: str | None) -> None:
    if done is None:
        messages.warning(request, "There was nothing to do: it was so already.")
    else:
        messages.success(request, f"Done: {done}.")


def log(request: HttpRequest, row: Model, text: str) -> None:
    """Enter what was done in the audit log."""
    user = request.user.pk
    assert user is not None  # pages are for those who have signed in
    LogEntry.objects.log_actions(user, [row], CHANGE, text, single_object=True)
