"""Request compression: none or gzip. The size is checked while decompressing, so a bomb never unfolds."""

import zlib

from sessions_app.errors import BadRequest, BodyTooLarge, UnsupportedMediaType

_GZIP = 16 + zlib.MAX_WBITS


def decompressed(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """The plain body, at most `max_bytes` long."""
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return _within(body, max_bytes)
    if coding != "gzip":
        raise UnsupportedMediaType(f"Unsupported Content-Encoding '{coding}', expected 'gzip' or none")
    return _gunzipped(body, max_bytes)


def _within(body: bytes, max_bytes: int) -> bytes:
    if len(body) > max_bytes:
        raise BodyTooLarge(f"The body is larger than {max_bytes} bytes")
    return body


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    """A gzip file may consist of several members; one byte more than allowed is enough to refuse."""
    parts: list[bytes] = []
    total = 0
    while body:
        member = zlib.decompressobj(_GZIP)
        try:
            part = member.decompress(body, max_bytes - total + 1)
        except zlib.error as error:
            raise BadRequest(f"The body is no valid gzip: {error}") from None
        total += len(part)
        parts.append(_within_total(part, total, max_bytes))
        if not member.eof:
            raise BadRequest("The gzip body ends too early")
        body = member.unused_data
    return b"".join(parts)


def _within_total(part: bytes, total: int, max_bytes: int) -> bytes:
    if total > max_bytes:
        raise BodyTooLarge(f"The body is larger than {max_bytes} bytes when decompressed")
    return part
