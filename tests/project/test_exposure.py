"""Who may bind where."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from tito_project.configuration import read
from tito_project.env import Environment
from tito_project.exposure import default_allowed_hosts, is_loopback, refuse_open_bind


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"])
def test_loopback_needs_nothing(bind: str) -> None:
    assert is_loopback(bind)
    refuse_open_bind(read(Environment({"TITO_BIND": bind})))


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "10.0.0.5", "example.org"])
def test_an_open_bind_without_auth_is_refused(bind: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TITO_ALLOW_OPEN"):
        refuse_open_bind(read(Environment({"TITO_BIND": bind})))


@pytest.mark.parametrize("yes", [{"TITO_AUTH": "token"}, {"TITO_ALLOW_OPEN": "true"}])
def test_an_open_bind_with_auth_or_an_explicit_yes_is_fine(yes: dict[str, str]) -> None:
    refuse_open_bind(read(Environment({"TITO_BIND": "0.0.0.0", **yes})))


def test_allowed_hosts_are_loopback_and_the_bound_address() -> None:
    assert default_allowed_hosts("127.0.0.1") == ["localhost", "[::1]", "127.0.0.1"]
    assert default_allowed_hosts("0.0.0.0") == ["localhost", "[::1]", "127.0.0.1"]
    assert default_allowed_hosts("10.0.0.5")[-1] == "10.0.0.5"
    assert default_allowed_hosts("fd00::5")[-1] == "[fd00::5]"
