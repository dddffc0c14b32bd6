"""How a page becomes a reply: permission, twin, template, and what is said about what does not exist."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sessions_app.admin.bounded import TooLong
from sessions_app.admin.twin import json_reply, wants_json
from sessions_app.auditing import reads
from sessions_app.models import Session


class Missing(Exception):
    """There is no such row; the text says what was looked for."""


_TOO_LONG = "The database was asked for too much and did not answer in time. Take a shorter range of time."

View = Callable[..., HttpResponse]


def page(view: View) -> View:
    """A view for whoever may look at sessions."""
    return page_for("sessions_app.view_session")(view)


def page_for(permission: str) -> Callable[[View], View]:
    """A view for whoever has a permission; what is missing is a page that says so."""

    def guarding(view: View) -> View:
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.has_perm(permission):
                raise PermissionDenied
            try:
                return view(request, *args, **kwargs)
            except Missing as missing:
                return told(request, "Not here", str(missing), 404)
            except TooLong:
                return told(request, "Not read", _TOO_LONG, 503)

        return guarded

    return guarding


def shown(request: HttpRequest, template: str, title: str, value: Any, **context: Any) -> HttpResponse:
    """A page's value as its twin, or in its template as `page`."""
    if wants_json(request):
        return json_reply(value)
    everything = {**admin.site.each_context(request), "title": title, "page": value, **context}
    return render(request, f"admin/tito/{template}", everything)


def told(request: HttpRequest, title: str, text: str, status: int) -> HttpResponse:
    """A page that is one sentence."""
    if wants_json(request):
        return json_reply({"error": text}, status=status)
    context = {**admin.site.each_context(request), "title": title, "text": text}
    return render(request, "admin/tito/missing.html", context, status=status)


def session_of(text: str) -> Session:
    """The session of an address; deleted ones are still there."""
    try:
        session_id = UUID(text)
    except ValueError:
        raise Missing(f"{text!r} is no session id: those are 32 hex digits.") from None
    found = Session.objects.select_related("profile").filter(pk=session_id).first()
    if found is None:
        raise Missing(f"There is no session {session_id.hex}. Retention may have removed it.")
    return found


def read_session(request: HttpRequest, text: str, what: str) -> Session:
    """The session of an address, to be shown: the read goes on record."""
    session = session_of(text)
    reads.note(request.user.get_username(), what, [session.id])
    return session


def number(request: HttpRequest, name: str, otherwise: int) -> int:
    """A whole number of the query string; nonsense is as good as absent."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


_MOST_SEQ = 2**31 - 1


def node_seq(session: Session, seq: int) -> int:
    """A seq of an address, if there may be such a node."""
    if seq > _MOST_SEQ:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    return seq
