"""URL root: the operator screens, and everything sessions_app answers."""

from django.contrib import admin
from django.urls import include, path

from sessions_app.api.openapi.view import DocumentView

handler404 = "sessions_app.api.not_found.not_found"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("schema/", DocumentView.as_view()),
    path("", include("sessions_app.api.urls")),
]
