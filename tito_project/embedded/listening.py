"""Ports and addresses: bound before anything is started, so that a busy port costs nothing but one line."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from tito_project.embedded.errors import ServiceError

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_HEALTH_S = 5.0


def listening_socket(bind: str, port: int) -> socket.socket:
    """Bound, not yet listening; port 0 takes a free one."""
    host = bind.strip("[]")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise ServiceError(f"cannot listen on {bind}: {error.strerror}") from error
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        reason = f"cannot listen on {bind}:{port} ({error.strerror})"
        raise ServiceError(f"{reason}: choose another port with --port, or 0 for a free one") from error
    return listener


def port_of(listener: socket.socket) -> int:
    """The port a socket is bound to."""
    return int(listener.getsockname()[1])


def free_port() -> int:
    """A loopback port nobody uses at this moment."""
    with listening_socket("127.0.0.1", 0) as listener:
        return port_of(listener)


def accepts(port: int) -> bool:
    """True if something listens on the loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2.0).close()
    except OSError:
        return False
    return True


def base_url(bind: str, port: int) -> str:
    """Where this machine reaches a server bound like that."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind.strip("[]"), bind.strip("[]"))
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def healthy(base: str, allowed_hosts: Sequence[str]) -> bool:
    """True if `/health` answers 200, asked by a name the server accepts and past any proxy."""
    try:
        with _asked(f"{base}/health", allowed_hosts) as reply:
            return bool(reply.status == HTTPStatus.OK)
    except OSError:
        return False


def engine_trouble(base: str, allowed_hosts: Sequence[str]) -> str | None:
    """What `/ready` says of an engine that is not; None also where it says nothing in time."""
    try:
        _asked(f"{base}/ready", allowed_hosts).close()
    except urllib.error.HTTPError as error:
        said = json.load(error).get("parts", {}).get("engine", "ok")
        return None if said == "ok" else str(said)
    except OSError:
        pass
    return None


def _asked(url: str, allowed_hosts: Sequence[str]) -> Any:
    request = urllib.request.Request(url)
    name = allowed_hosts[0].lstrip(".") if allowed_hosts else "*"
    if name != "*":
        request.add_header("Host", name)
    return _OPENER.open(request, timeout=_HEALTH_S)
