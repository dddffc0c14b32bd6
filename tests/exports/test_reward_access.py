"""Who may report rewards and finish: the session's key while the session is there, the admin always. Only
the admin discards."""

from tests.client import Client
from tests.harness import running_server


def test_keys_and_the_admin_token() -> None:
    with running_server({"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": "admin-secret"}) as url:
        anybody = Client(url)
        admin = Client(url, {"authorization": "Bearer admin-secret"})
        created = admin.call("POST", "/sessions", {})
        session = created.json["session_id"]
        owner = Client(url, {"authorization": f"Bearer {created.headers['x-tito-session-key']}"})
        stranger = Client(url, {"authorization": "Bearer tito-nobody"})
        for path in ("rewards", "finish", "samples"):
            url_path = f"/sessions/{session}/{path}"
            assert anybody.call("POST", url_path, {"value": 1}).code == "unauthorized"
            assert stranger.call("POST", url_path, {"value": 1}).code == "session_not_found"
        assert owner.call("POST", f"/sessions/{session}/rewards", {"value": 1}).status == 200
        assert owner.call("POST", f"/sessions/{session}/finish", {}).status == 200
        assert owner.call("DELETE", f"/sessions/{session}?discard=true").code == "unauthorized"
        assert owner.call("DELETE", f"/sessions/{session}").status == 204
        assert owner.call("POST", f"/sessions/{session}/rewards", {"value": 2}).code == "session_not_found"
        assert admin.call("POST", f"/sessions/{session}/rewards", {"value": 2}).status == 200
