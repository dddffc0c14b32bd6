"""Which headers an engine sees: the client's, without those of one connection, plus one affinity header."""

from collections.abc import Mapping

ROUTING_KEY = "X-SMG-Routing-Key"
"""SGLang's routers keep a session on one worker by it."""
SESSION_ID = "x-session-id"
"""The same for vLLM's."""

_NEVER_FORWARDED = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
    "host", "content-length", "content-encoding", "expect",
    "accept-encoding",
    ROUTING_KEY.lower(), SESSION_ID,
})  # fmt: skip
"""Hop by hop; about the client's own body or connection; encodings we may be unable to read; affinity."""


def forwarded(headers: Mapping[str, str], affinity: str, session_id: str) -> dict[str, str]:
    """The request headers for an engine, with exactly one affinity header whatever the client sent."""
    named_hop_by_hop = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    dropped = _NEVER_FORWARDED | named_hop_by_hop
    kept = {name: value for name, value in headers.items() if name.lower() not in dropped}
    kept[affinity] = session_id
    return kept
