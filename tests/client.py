"""A plain HTTP client for tests: one connection a request, nothing hidden, nothing retried."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    """Lower-case names."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        return self.headers.get("x-tito-error-code")


class Client:
    """Calls one server."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.url = url
        self._parts = urlsplit(url)
        self._headers = headers or {}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        timeout: float = 30,
    ) -> Answer:
        """One request; a body that is not bytes is sent as JSON."""
        sent = {**self._headers, **(headers or {})}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection(self._parts.hostname, self._parts.port, timeout=timeout)
        try:
            connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def create(self, **options: Any) -> str:
        """A new session's id."""
        answer = self.call("POST", "/sessions", options)
        assert answer.status == 200, answer.body
        return answer.json["session_id"]

    def chat(
        self,
        session: str,
        messages: Any,
        headers: dict[str, str] | None = None,
        timeout: float = 30,
        **fields: Any,
    ) -> Answer:
        """One chat turn."""
        body = {"messages": messages, **fields}
        return self.call("POST", f"/sessions/{session}/v1/chat/completions", body, headers, timeout)

    def get(self, session: str, query: str = "") -> Any:
        """The session as GET shows it."""
        answer = self.call("GET", f"/sessions/{session}{query}")
        assert answer.status == 200, answer.body
        return answer.json

    def tokens(self, session: str) -> list[int]:
        """Accumulated ids of the active path."""
        return self.get(session)["metadata"]["accumulated_token_ids"]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def reply_of(answer: Answer) -> dict[str, Any]:
    """The assistant message of a chat answer."""
    assert answer.status == 200, answer.body
    return answer.json["choices"][0]["message"]
