"""Compression: none or gzip, of requests and of answers.

The size of a request is checked while decompressing, so a bomb never unfolds.
"""

import gzip
import zlib

from sessions_app.errors import BadRequest, BodyTooLarge, UnsupportedMediaType

GZIP = "gzip"
WORTH_IT = 256
"""Shorter answers go out as they are."""
_GZIP = 16 + zlib.MAX_WBITS
_CHUNK = 64 * 1024
_MOST_MEMBERS = 1000


def answered(body: bytes, accept_encoding: str) -> tuple[bytes, bool]:
    """An answer as it goes out, and whether it is gzip now."""
    if len(body) < WORTH_IT or not _accepts_gzip(accept_encoding):
        return body, False
    return gzip.compress(body, compresslevel=6, mtime=0), True


def _accepts_gzip(accept_encoding: str) -> bool:
    """What names gzip decides, else what is said of all codings."""
    weights: dict[str, bool] = {}
    for item in accept_encoding.lower().split(","):
        coding, _, weight = item.partition(";")
        weights[coding.strip()] = _is_above_zero(weight)
    return weights.get(GZIP, weights.get("*", False))


def _is_above_zero(weight: str) -> bool:
    name, _, value = weight.partition("=")
    if name.strip() != "q":
        return True
    try:
        return float(value) > 0
    except ValueError:
        return False


def decompressed(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """The plain body, at most `max_bytes` long."""
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return _within(body, max_bytes)
    if coding != GZIP:
        raise UnsupportedMediaType(f"Unsupported Content-Encoding '{coding}', expected 'gzip' or none")
    return _gunzipped(body, max_bytes)


def _within(body: bytes, max_bytes: int) -> bytes:
    if len(body) > max_bytes:
        raise BodyTooLarge(f"The body is larger than {max_bytes} bytes")
    return body


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    """A gzip file may consist of several members; one byte more than allowed is enough to refuse."""
    parts: list[bytes] = []
    left, total, position = memoryview(body), 0, 0
    member, members = zlib.decompressobj(_GZIP), 1
    while position < len(left):
        if member.eof:
            member, members = zlib.decompressobj(_GZIP), members + 1
        if members > _MOST_MEMBERS:
            raise BadRequest(f"The gzip body has more than {_MOST_MEMBERS} members")
        chunk = left[position : position + _CHUNK]
        part = _inflated(member, chunk, max_bytes - total + 1)
        total += len(part)
        parts.append(_within_total(part, total, max_bytes))
        position += len(chunk) - len(member.unused_data)
    if parts and not member.eof:
        raise BadRequest("The gzip body ends too early")
    return b"".join(parts)


def _inflated(member: "zlib._Decompress", chunk: memoryview, most: int) -> bytes:
    try:
        return member.decompress(chunk, most)
    except zlib.error as error:
        raise BadRequest(f"The body is no valid gzip: {error}") from None


def _within_total(part: bytes, total: int, max_bytes: int) -> bytes:
    if total > max_bytes:
        raise BodyTooLarge(f"The body is larger than {max_bytes} bytes when decompressed")
    return part
