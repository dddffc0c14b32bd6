"""The fault table through the whole server: status, code, state unchanged, record kept, session usable."""

from collections.abc import Iterator

import pytest

from sessions_app import errors
from sessions_app.models import Record
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer
from tests.backends.engines import ENGINES
from tests.backends.test_fault_table import EXCEPTIONS, EXPECTED
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
OK = load_tokenizer(str(DEMO_MODEL)).encode("ok<|im_end|>").tolist()
TIMEOUT_S = 1.0


@pytest.fixture(scope="module", params=ENGINES)
def server(request, django_db_setup, django_db_blocker) -> Iterator[tuple[str, Client, FakeEngine]]:
    with django_db_blocker.unblock(), FakeEngine() as engine:
        settings = {
            "TITO_BACKEND": request.param,
            "TITO_BACKEND_URL": engine.url,
            "TITO_ENGINE_TIMEOUT": str(TIMEOUT_S),
        }
        with running_server(settings) as url:
            yield request.param, Client(url), engine


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_changes_nothing_but_the_record(server, fault):
    name, client, engine = server
    expected = EXCEPTIONS.get((name, fault), EXPECTED[fault])
    session = client.create()
    engine.script(Reply(OK))
    history = [user("hello"), reply_of(client.chat(session, [user("hello")])), user("more")]
    before = client.call("GET", f"/sessions/{session}").body

    engine.script(Reply(OK, fault=fault))
    answer = client.chat(session, history)
    if expected is None:
        assert answer.status == 200
        return
    status = int(fault) if expected is errors.UpstreamStatus else expected.status
    assert (answer.status, answer.code) == (status, expected.code), answer.body
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.filter(session_id=session).latest("pk")
    assert (record.state, record.error_code) == ("upstream_error", expected.code)

    engine.script(Reply(OK))
    assert client.chat(session, history).status == 200
