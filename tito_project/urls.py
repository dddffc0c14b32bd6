"""URL root: the operator screens, and everything sessions_app answers."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from sessions_app.api.openapi.view import DocumentView

SESSIONS = RedirectView.as_view(pattern_name="admin:sessions_app_session_changelist")
"""Where whoever types the address of the server means to go."""

admin.autodiscover()

handler404 = "sessions_app.admin.pages.not_found.not_found"

urlpatterns = [
    path("", SESSIONS),
    path("admin/", SESSIONS),
    path("admin/", admin.site.urls),
    path("schema/", DocumentView.as_view()),
    path("", include("sessions_app.api.urls")),
]
