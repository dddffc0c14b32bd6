"""Which URLs a profile may name, and what a name may resolve to."""

import asyncio
import ipaddress

import pytest

from sessions_app.backends.destinations import GuardedResolver, check_engine_url, is_refused


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.7:30000",
        "https://engine.example:8443/base",
        "http://127.0.0.1:8000",
        "http://[fd12:3456::1]:80",
        "http://engine_1",
    ],
)
def test_engines_may_stand_on_private_addresses(url: str) -> None:
    check_engine_url(url, ())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "engine:8000",
        "file:///etc/passwd",
        "gopher://10.0.0.1",
        "http://",
        "http://user:secret@10.0.0.1",
        "http://10.0.0.1/?a=b",
        "http://10.0.0.1/#a",
        "http://10.0.0.1/ HTTP/1.1",
        "http://10.0.0.1:99999",
        "http://a..b:8000",
        "http://169.254.169.254/latest/meta-data",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[64:ff9b::6464:64c8]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[::169.254.169.254]/",
        "http://[::]/",
        "http://168.63.129.16/",
        "http://169.254.169.254./",
        "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://0.0.0.0:8000",
        "http://224.0.0.1",
    ],
)
def test_what_no_engine_can_have_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"must|no URL|no engine"):
        check_engine_url(url, ())


def test_an_allow_list_names_hosts_and_networks() -> None:
    allowed = ("10.1.0.0/16", "engine.example", "fd12::/16")
    for url in ("http://10.1.2.3:1", "http://ENGINE.example./", "http://[fd12::9]"):
        check_engine_url(url, allowed)
    for url in ("http://10.2.0.1", "http://other.example", "http://engine.example.evil", "http://127.0.0.1"):
        with pytest.raises(ValueError, match="TITO_ENGINE_HOSTS"):
            check_engine_url(url, allowed)


def test_a_name_that_resolves_to_a_refused_address_is_not_connected_to(monkeypatch) -> None:
    async def resolve() -> None:
        resolver = GuardedResolver()
        told = ["169.254.169.254"]

        async def answer(host, port=0, family=0):
            return [{"hostname": host, "host": each, "port": port} for each in told]

        monkeypatch.setattr(resolver._inner, "resolve", answer)
        with pytest.raises(OSError, match="no engine"):
            await resolver.resolve("rebound.example", 80)
        told.append("10.0.0.1")
        assert [each["host"] for each in await resolver.resolve("both.example", 80)] == ["10.0.0.1"]
        await resolver.close()

    asyncio.run(resolve())


def test_ordinary_addresses_are_not_refused() -> None:
    assert not any(
        is_refused(ipaddress.ip_address(text))
        for text in ("127.0.0.1", "::1", "192.168.1.1", "2001:db8::1", "64:ff9b::a00:7")
    )
