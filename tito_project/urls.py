"""URL root: the operator screens, and everything sessions_app answers."""

from django.contrib import admin
from django.urls import include, path

handler404 = "sessions_app.api.not_found.not_found"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("sessions_app.api.urls")),
]
