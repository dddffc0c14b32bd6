"""Static files as whole answers.

WhiteNoise hands each file over as a synchronous iterator, which Django's ASGI handler has to drain in a
thread, with a warning for each. Files are small: here each is read at once, in the thread of the middleware.
"""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Answers requests for static files, ranges and unchanged ones too."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """One file."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        answer = HttpResponse(content, status=int(found.status))
        del answer["content-type"]
        for name, value in found.headers:
            answer[name] = value
        return answer
