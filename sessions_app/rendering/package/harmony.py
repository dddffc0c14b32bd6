"""The vocabulary that OpenAI's encoder for gpt-oss reads, made from the model's own tokenizer.

The encoder wants a file that it would download. Its lines are the tokens as bytes in base64, each with its
id: what the model's byte-level tokenizer spells in another alphabet. Invariant: the file that is made is the
published one byte for byte, which the encoder checks again.
"""

import base64
import hashlib
import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from sessions_app.rendering.tokenizer import ChatTokenizer

HARMONY = "gpt-oss"
"""The family that uses the encoder."""
FOLDER_VARIABLE = "TIKTOKEN_ENCODINGS_BASE"
"""Names the folder where the encoder looks before it downloads; what is set there is left alone."""
FILE = "o200k_base.tiktoken"
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_TOKENS = 199_998
"""Ids below are ordinary tokens; the marks stand above."""
_LOCK = threading.Lock()
_MADE: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when the process ends."""


def provide_vocabulary(tokenizer: ChatTokenizer) -> None:
    """Lets the encoder find its vocabulary. Raises ValueError where there is none."""
    with _LOCK:
        if named := os.environ.get(FOLDER_VARIABLE):
            if not (Path(named) / FILE).is_file():
                raise ValueError(f"{FOLDER_VARIABLE}={named!r} holds no {FILE}")
            return
        content = _published(tokenizer.vocabulary())
        if content is None:
            raise ValueError("the vocabulary is not that of gpt-oss (o200k_base)")
        _MADE.append(tempfile.TemporaryDirectory(prefix="tito-o200k-"))
        (Path(_MADE[-1].name) / FILE).write_bytes(content)
        os.environ[FOLDER_VARIABLE] = _MADE[-1].name


def _published(vocabulary: Mapping[str, int]) -> bytes | None:
    """The file's content; None where the vocabulary is another one."""
    tokens = sorted((number, text) for text, number in vocabulary.items() if number < _TOKENS)
    if len(tokens) != _TOKENS:
        return None
    try:
        content = b"".join(b"%s %d\n" % (base64.b64encode(_bytes(text)), number) for number, text in tokens)
    except KeyError:
        return None
    return content if hashlib.sha256(content).hexdigest() == _SHA256 else None


def _bytes(text: str) -> bytes:
    return bytes(_BYTES[character] for character in text)


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level tokenizers write for the 256 bytes: printable ones for themselves, the
    others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}


_BYTES = _byte_alphabet()
