"""A browser's share of HTTP: cookies and redirects."""

import urllib.parse
import urllib.request
from http.cookiejar import CookieJar


class Browser:
    """Keeps the cookies of one site."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def get(self, path: str) -> str:
        """The body; raises HTTPError unless it is a success."""
        with self._opener.open(self._base + path, timeout=30) as reply:
            return str(reply.read().decode())

    def post(self, path: str, form: dict[str, str]) -> str:
        """The body of the page a form leads to."""
        with self._opener.open(self._base + path, urllib.parse.urlencode(form).encode(), timeout=30) as reply:
            return str(reply.read().decode())
