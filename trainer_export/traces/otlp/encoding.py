"""The two encodings of a request; the answer uses the same one."""

from enum import StrEnum

from sessions_app.errors import UnsupportedMediaType


class Encoding(StrEnum):
    """Content type by encoding."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def encoding_of(content_type: str) -> Encoding:
    """Parameters such as charset are ignored."""
    kind = content_type.split(";", 1)[0].strip().lower()
    try:
        return Encoding(kind)
    except ValueError:
        raise UnsupportedMediaType(
            f"Unsupported Content-Type '{kind}', expected '{Encoding.PROTOBUF}' or '{Encoding.JSON}'"
        ) from None
