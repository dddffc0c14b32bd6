"""Who can reach the server: an address beyond this machine needs authentication, or an explicit yes."""

import ipaddress

from django.core.exceptions import ImproperlyConfigured

from tito_project.configuration import Configuration

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_WILDCARDS = frozenset({"0.0.0.0", "::"})


def is_loopback(bind: str) -> bool:
    """True if only this machine can connect to the address."""
    if bind == "localhost":
        return True
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return False


def refuse_open_bind(configuration: Configuration) -> None:
    """Raises ImproperlyConfigured for a server that anybody on the network could use."""
    if is_loopback(configuration.bind) or configuration.auth != "off" or configuration.allow_open:
        return
    raise ImproperlyConfigured(
        f"TITO_BIND={configuration.bind} is reachable from other machines and TITO_AUTH is off: "
        "set TITO_AUTH=token, or TITO_ALLOW_OPEN=true if that is meant"
    )


def default_allowed_hosts(bind: str) -> list[str]:
    """Loopback names, and the bound address itself unless it is a wildcard."""
    hosts = sorted(LOOPBACK_HOSTS, reverse=True)
    if not is_loopback(bind) and bind not in _WILDCARDS:
        hosts.append(f"[{bind}]" if ":" in bind else bind)
    return hosts
