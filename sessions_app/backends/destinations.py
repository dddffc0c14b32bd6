"""Where an engine may be: what a profile's URL is checked against, and what a name may turn out to be.

Engines stand on private addresses, so those are no reason to refuse. Link-local ones are: behind them clouds
keep the credentials of the machine. Invariant: no connection is made to a name that resolves to a refused
address, whenever it does so.
"""

import ipaddress
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset({
    ipaddress.ip_address("100.100.100.200"),
    ipaddress.ip_address("168.63.129.16"),
    ipaddress.ip_address("192.0.0.192"),
    ipaddress.ip_address("fd00:ec2::254"),
})  # fmt: skip
"""Services that tell a machine its credentials, outside the link-local ranges."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


def check_engine_url(url: str, allowed: tuple[str, ...]) -> None:
    """Raises ValueError with what is wrong. `allowed`: host names and networks; () = any not refused."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError as error:
        raise ValueError(f"is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must be an http:// or https:// URL with a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold credentials")
    if parts.query or parts.fragment or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise ValueError("must not have a query, a fragment, blanks or control characters")
    address = _address(host)
    if address is not None and is_refused(address):
        raise ValueError(f"{host} is an address that no engine can have")
    if allowed and not any(_covers(entry, host.rstrip("."), address) for entry in allowed):
        raise ValueError(f"{host} is not in TITO_ENGINE_HOSTS")


def is_refused(address: Address) -> bool:
    """Whether no engine can stand there."""
    return any(
        each.is_link_local or each.is_multicast or each.is_unspecified or each in _METADATA
        for each in (address, *_embedded(address))
    )


def _embedded(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """IPv4 addresses that an IPv6 one may lead to: mapped, translated or tunnelled."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    if address in _TRANSLATED or address in _COMPATIBLE:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
        if inner is not None:
            yield inner


def _address(host: str) -> Address | None:
    """The address that a host is, in any spelling that the system's resolver takes for one."""
    host = host.rstrip(".")
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _covers(entry: str, host: str, address: Address | None) -> bool:
    if address is None:
        return entry.lower() == host
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


class GuardedResolver(AbstractResolver):
    """The system's answers without the addresses that are refused."""

    def __init__(self) -> None:
        self._inner = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a name. Raises OSError where none is left."""
        found = await self._inner.resolve(host, port, family)
        kept = [
            each for each in found if not is_refused(ipaddress.ip_address(each["host"].partition("%")[0]))
        ]
        if not kept:
            raise OSError(f"{host} resolves to addresses that no engine can have")
        return kept

    async def close(self) -> None:
        """Close the resolver."""
        await self._inner.close()
