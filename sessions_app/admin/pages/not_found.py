"""The 404 of addresses that nothing answers: a page for people at the screens, else the reference's words."""

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from sessions_app.admin.pages.serving import told
from sessions_app.api import not_found as others


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Who is not signed in learns nothing of which addresses there are."""
    if request.path.startswith(reverse("admin:index")) and admin.site.has_permission(request):
        return told(request, "Not here", "No page has this address.", 404)
    return others.not_found(request, exception)
