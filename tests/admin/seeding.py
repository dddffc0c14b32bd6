"""Sessions to look at, made by real requests against a real server: every kind of attachment, and odd
content."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.utils import timezone

from sessions_app.models import Session
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server
from trainer_export.models import Sample

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds two numbers",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    }
]
SYSTEM = {"role": "system", "content": "You are a careful assistant.\nAnswer in one line."}
ODD = (
    "<script>document.title='broken'</script> <b>bold</b> & \"quoted\" "
    "right-to-left: \u202eevil\u202c שלום مرحبا zero\u200bwidth bell\x07 nul-like\u2028line naïve 😀 e\u0301"
)

Login = Callable[[str], Client]
"""A browser of somebody with a role."""


@dataclass(frozen=True)
class Server:
    """A running server and the engine behind it."""

    url: str
    engine: FakeEngine

    def post(self, path: str, body: Any) -> tuple[int, dict[str, str], Any]:
        """Status, headers and parsed body."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"content-type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, dict(reply.headers), json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), json.loads(error.read() or b"null")

    def session(self, **options: Any) -> "Conversation":
        """A new session."""
        return Conversation(self, self.post("/sessions", options)[2]["session_id"])


@dataclass(frozen=True)
class Conversation:
    """One session of a server."""

    server: Server
    id: str

    def turn(
        self,
        messages: list[Any],
        text: str = "ok",
        *,
        calls: list[Any] | None = None,
        finish: str = "stop",
        **body: Any,
    ) -> dict[str, Any]:
        """A generated turn; the assistant message."""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls is not None:
            message["tool_calls"] = calls
        spoken = text + "".join(
            f"\n<tool_call>\n{json.dumps(call['function'])}\n</tool_call>" for call in calls or []
        )
        ids = sampled(spoken, closed=finish != "length")
        self.server.engine.script(
            Reply(ids=ids, logprobs=[_logprob(at) for at in range(len(ids))], message=message, finish=finish)
        )
        status, _, reply = self.send(messages, **body)
        assert status == 200, reply
        return reply["choices"][0]["message"]

    def send(self, messages: list[Any], **body: Any) -> tuple[int, dict[str, str], Any]:
        """A request as it is."""
        return self.server.post(f"/sessions/{self.id}/v1/chat/completions", {"messages": messages, **body})


def sampled(text: str, *, closed: bool = True) -> list[int]:
    """Ids that spell a text otherwise than the tokenizer would: one character at a time where it can."""
    tokenizer = load_tokenizer(str(DEMO_MODEL))
    ids: list[int] = []
    for word in text.split(" "):
        ids += tokenizer.encode((" " if ids else "") + word).tolist()
    return [*ids, *tokenizer.encode("<|im_end|>").tolist()] if closed else ids


def _logprob(at: int) -> float:
    return -(2.0 ** ((at * 7) % 11 - 8))


@contextmanager
def seeded_server(environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A server whose engine answers what the tests say."""
    with FakeEngine() as engine:
        backend = {"TITO_BACKEND": "sglang", "TITO_BACKEND_URL": engine.url}
        with running_server(backend | (environment or {})) as url:
            yield Server(url, engine)


def user(text: str) -> dict[str, str]:
    """A user message."""
    return {"role": "user", "content": text}


def call(arguments: str, identity: str = "call-1") -> dict[str, Any]:
    """A call of the tool."""
    return {"id": identity, "type": "function", "function": {"name": "add", "arguments": arguments}}


@dataclass(frozen=True)
class Seeds:
    """Ids of the seeded sessions."""

    plain: str
    """Three turns with a tool call, each continuing the one before."""
    busy: str
    """Policy tree: retry, edit, respelled arguments, unrelated history, changed tools, a cut reply."""
    rolled: str
    """Policy rollback: one rollback."""
    reset: str
    """Policy linear: one reset."""
    odd: str
    """HTML, scripts, right-to-left and control characters."""
    failed: str
    """Refused requests and a failing engine."""
    empty: str
    """No turn."""
    long: str
    """More ids than a stretch of the token view holds."""


def seed(server: Server) -> Seeds:
    """All of them."""
    return Seeds(
        plain=plain(server),
        busy=busy(server),
        rolled=rolled(server),
        reset=reset(server),
        odd=odd(server),
        failed=failed(server),
        empty=server.session(harness="empty-handed").id,
        long=long(server),
    )


def plain(server: Server) -> str:
    """See Seeds."""
    talk = server.session(
        harness="demo-agent", rollout_id="rollout-1", group_id="group-1", labels={"task": "sums"}
    )
    history = [SYSTEM, user("What is 2 + 3?")]
    reply = talk.turn(history, "Let me add.", calls=[call('{"a": 2, "b": 3}')], tools=TOOLS)
    history += [reply, {"role": "tool", "tool_call_id": "call-1", "content": "5"}]
    reply = talk.turn(history, "It is five.", tools=TOOLS)
    history += [reply, user("And doubled?")]
    talk.turn(history, "That is ten.", tools=TOOLS)
    return talk.id


def busy(server: Server) -> str:
    """See Seeds."""
    talk = server.session(harness="demo-agent", history_policy="tree", labels={"task": "mixed"})
    first = [SYSTEM, user("Add 2 and 3, please.")]
    reply = talk.turn(first, "Adding.", calls=[call('{"a": 2, "b": 3}')], tools=TOOLS)
    answer = {"role": "tool", "tool_call_id": "call-1", "content": "5"}
    second = talk.turn([*first, reply, answer], "Five it is.", tools=TOOLS)
    talk.turn([*first, reply, answer], "The sum is five.", tools=TOOLS)
    respelled = {**reply, "tool_calls": [call('{"b":3,"a":2}')]}
    talk.turn([*first, respelled, answer], "Five, then.", tools=TOOLS)
    talk.turn(
        [*first, reply, answer, {**second, "content": "Five  it is."}, user("More")], "More.", tools=TOOLS
    )
    history = [*first, reply, answer, second]
    for number in range(6):
        history = [*history, user(f"Step {number}")]
        history.append(talk.turn(history, f"Step {number} is done.", tools=TOOLS))
    talk.turn([{"role": "system", "content": "Name this chat."}, user("Give a title")], "Adding numbers")
    talk.turn([*first[:1], user("Add 2 and 4, please.")], "Six.", tools=TOOLS)
    talk.turn(
        [*history, user("Tell a long story")], "Once upon a time there was", finish="length", tools=TOOLS
    )
    return talk.id


def rolled(server: Server) -> str:
    """See Seeds."""
    talk = server.session(harness="linear-agent", history_policy="rollback")
    history = [SYSTEM, user("One")]
    history.append(talk.turn(history, "First."))
    longer = [*history, user("Two")]
    longer.append(talk.turn(longer, "Second."))
    talk.turn([*history, user("Two, but otherwise")], "Second again.")
    return talk.id


def reset(server: Server) -> str:
    """See Seeds."""
    talk = server.session(harness="linear-agent", history_policy="linear")
    history = [SYSTEM, user("One")]
    history.append(talk.turn(history, "First."))
    talk.turn([SYSTEM, user("Something else entirely")], "A new start.")
    return talk.id


def odd(server: Server) -> str:
    """See Seeds."""
    talk = server.session(
        harness="<i>odd</i>", rollout_id="<u>rollout</u>", labels={"<b>": "<script>alert(1)</script>"}
    )
    first = talk.turn([user(ODD)], f"You said: {ODD}")
    talk.turn([user(ODD), first, user("edited <img src=x onerror=alert(1)>")], "Fine.")
    talk.turn([user(ODD + "!"), first, user("again")], "Fine.")
    return talk.id


def failed(server: Server) -> str:
    """See Seeds."""
    talk = server.session(harness="unlucky")
    history = [SYSTEM, user("Hello")]
    reply = talk.turn(history, "Hello.", finish="length")
    talk.send([*history, reply, user("More")])
    talk.send([])
    server.engine.script("500")
    talk.send([SYSTEM, user("Are you there?")])
    return talk.id


def long(server: Server) -> str:
    """See Seeds."""
    talk = server.session(harness="chatty")
    history: list[Any] = [SYSTEM]
    for number in range(12):
        history.append(user(f"Turn {number}: " + "tell me more about it, please. " * 30))
        history.append(talk.turn(history, f"Turn {number} goes on and on. " * 20))
    return talk.id


def stale_row(session: Session, leaf: int, sample_id: str) -> Sample:
    """A row that was handed out before a reward came."""
    now = timezone.now()
    return Sample.objects.create(
        session=session,
        sample_id=sample_id,
        leaf_seq=leaf,
        next_seq=leaf + 1,
        rollout_id="r",
        via="http",
        status="completed",
        tokens=9,
        trained_tokens=4,
        handed_at=now,
        stale_at=now,
        stale_reason="reward",
    )
