"""HTTP as clients really send it: chunked, slow, pipelined, with headers of their own."""

import json
import socket
import threading
import time
from urllib.parse import urlsplit

from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply, Status
from tests.integration.test_bad_input import toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says, toy_server

Toy = tuple[Client, FakeEngine]
BODY = json.dumps({"messages": [user("hello")]}).encode()


def head(session: str, *lines: str, query: str = "") -> bytes:
    """A chat request up to its body."""
    path = f"/sessions/{session}/v1/chat/completions{query}"
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def sent(client: Client, *pieces: bytes, answers: int = 1) -> bytes:
    """Everything the server says to these bytes, until it has given so many answers."""
    parts = urlsplit(client.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)
        received = b""
        while received.count(b"x-frame-options") < answers or not received.endswith(b"}"):
            data = connection.recv(65536)
            assert data, received
            received += data
        return received


def test_a_chunked_body_is_read(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")))
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:10], BODY[10:])]
    answer = sent(client, head(session, "Transfer-Encoding: chunked"), *chunks, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert client.get(session)["records"][0]["request"]["messages"] == [user("hello")]


def test_a_body_that_comes_slowly_is_read(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")))
    start = head(session, f"Content-Length: {len(BODY)}")
    pieces = [BODY[at : at + 7] for at in range(0, len(BODY), 7)]
    assert sent(client, start, *pieces).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_are_answered_in_order(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    one = head(session, f"Content-Length: {len(BODY)}") + BODY
    answers = sent(client, one + one, answers=2)
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.index(b"x-tito-node: 0") < answers.index(b"x-tito-node: 1")


def test_client_headers_and_query_reach_the_engine_with_one_routing_key(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")))
    lines = [
        "Content-Type: application/json; charset=utf-8", f"Content-Length: {len(BODY)}",
        "X-Smg-Routing-Key: mine", "X-Trace: 1", "X-Trace: 2",
        "x_under_score: kept", "Cookie: c=d",
        "Authorization: Bearer sk-engine", "Cookie: a=b",
        "Connection: keep-alive, X-Hop", "X-Hop: 1", "TE: trailers",
    ]  # fmt: skip
    sent(client, head(session, *lines, query="?a=1&b=%20x"), BODY)
    received = engine.requests[-1]
    assert received.query == "a=1&b=%20x"
    keys = [value for name, value in received.header_lines if name == "x-smg-routing-key"]
    assert keys == [session]
    names = {"content-type", "x-trace", "x_under_score", "authorization", "cookie"}
    assert {name: received.headers.get(name) for name in names} == {
        "content-type": "application/json; charset=utf-8",
        "x-trace": "1,2",
        "x_under_score": "kept",
        "authorization": "Bearer sk-engine",
        "cookie": "c=d; a=b",
    }
    assert not {"x-hop", "te", "transfer-encoding"} & received.headers.keys()


def test_engine_headers_reach_the_client_but_none_of_ours_can_be_forged(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    reply = {
        "id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{
            "index": 0, "message": says("ab"), "finish_reason": "stop",
            "meta_info": {"output_token_logprobs": [[-0.5, 100, None]], "completion_tokens": 1},
        }],
    }  # fmt: skip
    headers = {"X-Engine": "1", "X-Tito-Node": "77", "Server": "s", "Content-Type": "application/json"}
    engine.script(Status(200, headers, json.dumps(reply).encode()))
    answer = client.chat(session, [user("hello")])
    assert (answer.headers["x-engine"], answer.headers["x-tito-node"]) == ("1", "0")
    assert "server" not in answer.headers
    engine.script(Status(200, headers, json.dumps(reply).encode()))
    assert "x-engine" not in client.chat(session, [user("hello")], stream=True).headers


def test_engine_answers_other_than_200_pass_through(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    before = client.call("GET", f"/sessions/{session}").body
    for status, headers, body, passed in (
        (201, {"Content-Type": "application/json"}, b'{ "a" : 1.50 }', b'{"a":1.5}'),
        (302, {"Location": "/elsewhere", "Content-Type": "text/plain"}, b"moved", b"moved"),
        (400, {"Content-Type": "text/plain"}, b"bad \xff", b"bad \xff"),
        (503, {"Content-Type": "application/json", "Retry-After": "7"}, b"{half", b"{half"),
    ):  # fmt: skip
        for stream in (False, True):
            engine.script(Status(status, headers, body))
            answer = client.chat(session, [user("hello")], stream=stream)
            assert (answer.status, answer.body, answer.code) == (status, passed, "upstream_status")
            assert {name.lower() for name in headers} <= answer.headers.keys()
            assert answer.headers["x-tito-retryable"] == ("true" if status == 503 else "false")
    assert client.call("GET", f"/sessions/{session}").body == before


class RawEngine:
    """Answers each request with the next canned bytes."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                received = connection.recv(65536)
                while b"\r\n\r\n" not in received or not received.endswith(b"}"):
                    received += connection.recv(65536)
                self.heads.append(received.partition(b"\r\n\r\n")[0])
                connection.sendall(self.answers.pop(0))


def completion(*headers: bytes) -> bytes:
    """A whole 200 as bytes."""
    meta = {"output_token_logprobs": [[-0.5, 100, None]], "completion_tokens": 1}
    choice = {"index": 0, "message": says("ab"), "finish_reason": "stop", "meta_info": meta}
    body = json.dumps({"id": "r", "object": "x", "created": 1, "model": "m", "choices": [choice]}).encode()
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body])


def test_headers_pass_byte_for_byte_or_not_at_all(tmp_path) -> None:
    engine = RawEngine()
    with toy_server(tmp_path, TITO_BACKEND_URL=engine.url) as (client, _):
        session = client.create()
        named = [b"X-Utf: caf\xc3\xa9", b"X-Latin: caf\xe9", b"Connection: close, X-Hop", b"X-Hop: 1"]
        engine.answers = [completion(*named), completion(b"X-Control: a\x01b")]
        start = head(session, f"Content-Length: {len(BODY)}")[:-2] + b"X-Utf: caf\xc3\xa9\r\n\r\n"
        answer = sent(client, start, BODY).lower()
        assert answer.startswith(b"http/1.1 200")
        assert b"x-utf: caf\xc3\xa9\r\n" in answer
        assert b"x-latin: caf\xe9\r\n" in answer
        assert b"x-hop" not in answer
        assert b"x-utf: caf\xc3\xa9" in engine.heads[0].lower()
        assert b"x-control" not in sent(client, head(session, f"Content-Length: {len(BODY)}"), BODY).lower()


def test_a_status_that_does_not_exist_is_not_passed_on(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    engine.script(Status(700, {}, b"x"))
    answer = client.chat(client.create(), [user("hello")])
    assert (answer.status, answer.code) == (502, "upstream_invalid_reply")
