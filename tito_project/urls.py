"""URL root: the operator screens, and everything sessions_app answers."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("sessions_app.api.urls")),
]
