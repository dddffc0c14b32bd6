"""Sessions as files: there and back without a difference, and nothing that was tampered with."""

import gzip
import io
import json
import uuid
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.client import user
from tests.exports.exporting import linear
from tests.fakes.engine import Reply
from tests.integration.spans_support import batch, send, span
from tests.integration.test_cases import says
from tests.integration.test_samples import forked
from trainer_export.models import Span, SpanOrigin, Trace, TracedSession


def dumped(session: str, folder: Path) -> Path:
    file = folder / "s.tito.gz"
    call_command("session_dump", session, "--out", str(file), stdout=io.StringIO())
    return file


def loaded(file: Path, *options: str) -> str:
    said = io.StringIO()
    call_command("session_load", str(file), *options, stdout=said)
    return said.getvalue().split()[0]


def without_ids(text: str, session: str) -> str:
    return text.replace(session, "$SESSION")


def test_a_file_that_cannot_be_written_is_told_in_a_line(toy, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--out .*/missing/a\.gz: No such file or directory"):
        call_command("session_dump", toy[0].create(), "--out", str(tmp_path / "missing" / "a.gz"))


def test_a_session_comes_back_as_it_was_and_goes_on(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = forked(client, engine, labels={"a": "b"}, on_truncated="close")
    client.call("POST", f"/sessions/{session}/rewards", {"value": 1, "node": 2})
    twin = loaded(dumped(session, tmp_path), "--new-id")
    assert twin != session
    for path in ("", "/samples"):
        method = "POST" if path else "GET"
        one, other = (
            client.call(method, f"/sessions/{id}{path}", headers={"accept": "application/json"}).body.decode()
            for id in (session, twin)
        )
        assert without_ids(one, session) == without_ids(other, twin)
    engine.script(Reply([102, 2], message=says("ok")))
    history = [user("hello"), says("ab"), user("ab"), says("hello"), user("ok")]
    answer = client.chat(twin, history)
    assert (answer.headers["x-tito-attach"], answer.headers["x-tito-parent"]) == ("append", "2")


def test_dumping_again_gives_the_same_bytes(toy, tmp_path: Path) -> None:
    session = linear(*toy)
    assert dumped(session, tmp_path).read_bytes() == dumped(session, tmp_path).read_bytes()


def test_a_session_that_is_here_is_not_overwritten(toy, tmp_path: Path) -> None:
    file = dumped(linear(*toy), tmp_path)
    with pytest.raises(CommandError, match="is here already: --new-id"):
        loaded(file)


def test_no_key_leaves_the_server(toy, tmp_path: Path) -> None:
    file = dumped(linear(*toy), tmp_path)
    assert b"key_hash" not in gzip.decompress(file.read_bytes())


def test_a_deleted_session_can_be_dumped(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    client.call("DELETE", f"/sessions/{session}")
    assert dumped(session, tmp_path).stat().st_size
    with pytest.raises(CommandError, match="session not found"):
        dumped("0" * 32, tmp_path)


def tampered(file: Path, change) -> Path:
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    change(lines)
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return file


def _other_id(lines) -> None:
    row = next(line["row"] for line in lines[1:] if line["table"] == "checkpoint")
    row["completion"]["$b"] = "AAAAAAIAAAA="


def _no_logprobs(lines) -> None:
    next(line["row"] for line in lines[1:] if line["table"] == "checkpoint")["logprobs"]["$b"] = ""


def _no_checkpoint(lines) -> None:
    lines[:] = [line for line in lines if line.get("table") != "checkpoint"]


def _newer(lines) -> None:
    lines[0]["schema"] = "tito.session-dump/2"


def _unknown_column(lines) -> None:
    lines[1]["row"]["colour"] = "red"


def _no_session(lines) -> None:
    del lines[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_other_id, "not those that were served"),
        (_no_logprobs, "one logprob per id"),
        (_no_checkpoint, "damaged"),
        (_newer, "not a session dump of version"),
        (_unknown_column, "does not fit this server"),
        (_no_session, "damaged"),
    ],
)
def test_what_was_tampered_with_is_refused_in_whole(toy, tmp_path: Path, change, said: str) -> None:
    from sessions_app.models import Session

    file = tampered(dumped(linear(*toy), tmp_path), change)
    before = Session.objects.count()
    with pytest.raises(CommandError, match=said):
        loaded(file, "--new-id")
    assert Session.objects.count() == before


@pytest.mark.parametrize(
    "content", [b"", b"x", gzip.compress(b"")[:-4], gzip.compress(b"{"), gzip.compress(b"[]")]
)
def test_what_is_no_dump_is_refused(toy, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(CommandError, match="not a session dump"):
        loaded(tmp_path / "f")
    with pytest.raises(CommandError, match="No such file"):
        loaded(tmp_path / "nothing")


def with_spans(client, engine) -> str:
    """A session with a trace of two spans that name it, and one that names nothing."""
    session, number = linear(client, engine), uuid.uuid4().int
    told = {"gen_ai.operation.name": "chat", "gen_ai.prompt.0.content": "h\u00e9"}
    named = [
        span(1, number, None, "agent", attributes={"agent.name": "solver"}),
        span(2, number, 1, attributes=told),
    ]
    send(client, batch(*named, tito__session_id=session, service__name="s"))
    send(client, batch(span(3, number, 2, "late")))
    return session


def test_spans_come_back_with_their_session(toy, tmp_path: Path) -> None:
    session = with_spans(*toy)
    twin = loaded(dumped(session, tmp_path), "--new-id")

    def rows(model, of: str) -> list:
        hidden = {"id", "session_id"}
        fields = [field.attname for field in model._meta.concrete_fields if field.attname not in hidden]
        return [
            [bytes(value) if isinstance(value, memoryview) else value for value in row]
            for row in model.objects.filter(session_id=of).order_by("pk").values_list(*fields)
        ]

    for model in (Span, Trace, SpanOrigin, TracedSession):
        assert rows(model, session) == rows(model, twin) != []
    assert Span.objects.filter(session_id=twin).count() == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [("attributes", "[]"), ("attributes", "no json"), ("events", '[{"x": 1}]'), ("links", "{")],
)
def test_spans_that_could_not_be_read_again_are_refused(toy, tmp_path: Path, column: str, value: str) -> None:
    def change(lines) -> None:
        next(line["row"] for line in lines[1:] if line["table"] == "span")[column] = value

    file = tampered(dumped(with_spans(*toy), tmp_path), change)
    with pytest.raises(CommandError, match="damaged"):
        loaded(file, "--new-id")
