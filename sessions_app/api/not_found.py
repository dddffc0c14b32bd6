"""The 404 of paths that nothing answers."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from sessions_app.api.direct import json_response, with_error_headers
from sessions_app.errors import NotFound


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """In the words of the reference."""
    return with_error_headers(json_response({"detail": "Not Found"}, 404), NotFound())
