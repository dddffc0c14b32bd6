"""Our tokenizer in the shape that the package `renderers` asks for; it encodes without holding the GIL."""

from collections.abc import Sequence
from typing import Any

from sessions_app.rendering.tokenizer import ChatTokenizer


class PackageTokenizer:
    """The package's `Tokenizer` protocol over a ChatTokenizer. Character offsets are not offered: the
    package then leaves out per-token attribution, which nobody here reads."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self.name_or_path = tokenizer.model
        self.unk_token_id: int | None = None
        self.eos_token_id = min(tokenizer.end_ids, default=None)

    def encode(self, text: str, *args: Any, **kwargs: Any) -> list[int]:
        """Ids of a text, nothing added."""
        return self._tokenizer.encode(text).tolist()

    def decode(self, token_ids: Sequence[int], *args: Any, **kwargs: Any) -> str:
        """Text of ids, special tokens kept."""
        return self._tokenizer.decode(token_ids)

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """The id of a token's text, None where it is no single token."""
        if isinstance(tokens, str):
            return self._tokenizer.token_id(tokens)
        return [self._tokenizer.token_id(token) for token in tokens]
