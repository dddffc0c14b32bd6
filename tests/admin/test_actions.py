"""What operators may do: confirmed, logged, refused to viewers, and never a change to a checkpoint."""

import gzip
import json

import pytest

from sessions_app.admin.roles import ADMIN, OPERATOR, VIEWER
from sessions_app.models import Message, ModelProfile, Node, Session, TokenCheckpoint
from tests.admin.seeding import Login, Seeds, Server
from tests.admin.test_pages import LISTS, node_url, page, session_url, twin
from tests.rendering.support import HISTORY


@pytest.fixture
def server(seeded: tuple[Server, Seeds]) -> Server:
    """The one server: a second one in this process would take over the first one's connections."""
    return seeded[0]


def do_url(session: str, action: str) -> str:
    return f"/admin/sessions_app/session/{session}/do/{action}/"


def test_closing_asks_first_and_is_logged(login: Login, server: Server) -> None:
    talk = server.session()
    operator = login(OPERATOR)
    assert "serves no more turns" in page(operator, do_url(talk.id, "close"))
    assert Session.objects.get(pk=talk.id).status == "open"
    assert operator.post(do_url(talk.id, "close")).status_code == 302
    assert Session.objects.get(pk=talk.id).status == "closed"
    (entry,) = twin(operator, session_url(talk.id))["actions"]
    assert (entry["user"], entry["text"]) == (OPERATOR, "closed the session")
    assert "closed the session" in page(operator, session_url(talk.id))
    operator.post(do_url(talk.id, "close"))
    assert len(twin(operator, session_url(talk.id))["actions"]) == 1


def test_a_root_can_be_classed_by_hand(login: Login, seeds: Seeds) -> None:
    operator = login(OPERATOR)
    url = node_url(seeds.busy, 11) + "class/"
    before = bytes(TokenCheckpoint.objects.get(session_id=seeds.busy, node_seq=11).completion)
    assert "It is taken for" in page(operator, url)
    assert operator.post(url, {"choice": "side"}).status_code == 302
    node = Node.objects.get(session_id=seeds.busy, seq=11)
    assert (node.root_class, node.root_evidence) == ("side", "set by operator")
    assert bytes(TokenCheckpoint.objects.get(session_id=seeds.busy, node_seq=11).completion) == before
    assert operator.post(url, {"choice": "nonsense"}).status_code == 404
    assert operator.get(node_url(seeds.busy, 1) + "class/").status_code == 404


def test_a_key_is_revoked_once(login: Login, server: Server) -> None:
    talk = server.session()
    operator = login(OPERATOR)
    assert Session.objects.get(pk=talk.id).key_hash is not None
    operator.post(do_url(talk.id, "revoke-key"))
    assert Session.objects.get(pk=talk.id).key_hash is None
    operator.post(do_url(talk.id, "revoke-key"))
    assert [entry["text"] for entry in twin(operator, session_url(talk.id))["actions"]] == [
        "revoked the session's key"
    ]


def test_viewers_look_and_do_not_act(login: Login, seeds: Seeds) -> None:
    viewer = login(VIEWER)
    for url in (
        session_url(seeds.busy),
        node_url(seeds.busy, 1),
        *(f"/admin/{rows}/" for rows in LISTS if not rows.endswith("/dataread")),
    ):
        assert viewer.get(url).status_code == 200, url
    for url in (
        do_url(seeds.busy, "close"),
        do_url(seeds.busy, "revoke-key"),
        do_url(seeds.busy, "reassemble"),
        node_url(seeds.busy, 0) + "class/",
    ):
        assert viewer.get(url).status_code == 403, url
        assert viewer.post(url).status_code == 403, url
    assert viewer.post("/admin/sessions_app/session/what-if/", {"matcher": "exact"}).status_code == 403
    assert "Close</a>" not in page(viewer, session_url(seeds.busy))
    assert viewer.get("/admin/auth/user/").status_code == 403


def test_only_admins_set_up_profiles_and_people(login: Login, seeds: Seeds) -> None:
    admin = login(ADMIN)
    assert admin.get("/admin/sessions_app/modelprofile/add/").status_code == 200
    assert admin.get("/admin/auth/user/").status_code == 200


@pytest.mark.parametrize(("tool_parser", "says"), [("qwen3", "is read by"), ("", ""), ("glm", "")])
def test_a_parser_that_disagrees_with_its_family_is_refused_by_the_form(
    login: Login, tool_parser: str, says: str
) -> None:
    profile = {
        "name": f"read by {tool_parser or 'nothing set'}",
        "model": str(HISTORY / "config/tokenizer"),
        "chat_template": str(HISTORY / "config/chatml.jinja"),
        "chat_template_kwargs": "{}",
        "renderer": "template:glm47",
        "tool_parser": tool_parser,
        "backend": "demo",
    }
    answer = login(ADMIN).post("/admin/sessions_app/modelprofile/add/", profile)
    assert (answer.status_code == 200) is bool(says)
    assert says in answer.content.decode()
    assert ModelProfile.objects.filter(name=profile["name"]).exists() is not bool(says)


def test_operators_set_up_nothing(login: Login, seeds: Seeds) -> None:
    operator = login(OPERATOR)
    assert operator.get("/admin/sessions_app/modelprofile/add/").status_code == 403
    assert operator.get("/admin/auth/user/").status_code == 403


def test_text_is_purged_by_admins_once_and_for_good(login: Login, seeded: tuple[Server, Seeds]) -> None:
    talk = seeded[0].session()
    talk.turn([{"role": "user", "content": "zebra"}])
    admin = login(ADMIN)
    assert "cannot be taken back" in page(admin, do_url(talk.id, "purge-text"))
    assert "is open" in admin.post(do_url(talk.id, "purge-text"), follow=True).content.decode()
    assert Message.objects.filter(session_id=talk.id, body__contains="zebra").exists()
    Session.objects.filter(pk=talk.id).update(status="closed")
    before = bytes(TokenCheckpoint.objects.get(session_id=talk.id).prompt_delta)
    admin.post(do_url(talk.id, "purge-text"))
    assert not Message.objects.filter(session_id=talk.id, body__contains="zebra").exists()
    assert bytes(TokenCheckpoint.objects.get(session_id=talk.id).prompt_delta) == before
    admin.post(do_url(talk.id, "purge-text"))
    assert [entry["text"] for entry in twin(admin, session_url(talk.id))["actions"]] == [
        "purged the session's text"
    ]
    assert page(admin, node_url(talk.id, 0)), "the page of a purged node still answers"


def test_operators_purge_nothing(login: Login, seeds: Seeds) -> None:
    operator = login(OPERATOR)
    assert operator.get(do_url(seeds.plain, "purge-text")).status_code == 403
    assert operator.post(do_url(seeds.plain, "purge-text")).status_code == 403
    assert "Purge text</a>" not in page(operator, session_url(seeds.plain))


def test_what_cannot_be_done_is_told(login: Login, seeds: Seeds) -> None:
    assert login(OPERATOR).post(do_url(seeds.busy, "explode")).status_code == 404


def test_a_session_can_be_downloaded(login: Login, seeds: Seeds) -> None:
    reply = login(VIEWER).get(f"/admin/sessions_app/session/{seeds.plain}/dump/")
    assert reply.status_code == 200
    header = json.loads(gzip.decompress(reply.content).split(b"\n")[0])
    assert header["session_id"] == seeds.plain
