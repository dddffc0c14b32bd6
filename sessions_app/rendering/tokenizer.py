"""One Hugging Face tokenizer: text to ids and back, nothing added, nothing cleaned up.

Not here: chat templates and families. Invariants: special tokens of the text become their ids and are kept
on the way back; no BOS or EOS is inserted; no call holds the GIL for longer than a copy of its result
takes (the `*_batch*` calls of the fast backend release it, `encode` and `decode` do not).
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sessions_app.errors import InvalidMessages
from sessions_app.rendering.lossless import keeps_text
from sessions_app.rendering.protocol import Ids

_CONTEXTS = ("a", ".", "1", "\n")
"""Left neighbours tried by `encode_after`: what a model may well have sampled last."""


def ids_array(ids: Sequence[int]) -> Ids:
    """Ids as the read-only int32 array that travels through the product."""
    array = np.asarray(ids, dtype=np.int32)
    array.flags.writeable = False
    return array


class ChatTokenizer:
    """Immutable; shared between threads and renderers."""

    def __init__(self, tokenizer: Any, model: str) -> None:
        self.model = model
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._slow = tokenizer
        self.special_ids = _special_ids(tokenizer)
        self.vocab_size = _vocab_size(tokenizer, self._backend)
        self.fingerprint = _fingerprint(tokenizer, self._backend)
        self.chat_template: str | Mapping[str, str] | None = tokenizer.chat_template
        self.template_variables: Mapping[str, Any] = dict(tokenizer.special_tokens_map)
        """bos_token and the like, which templates may name."""
        self.end_ids = _end_ids(tokenizer, model)
        self.separators = self.special_ids | self.end_ids
        """Ids that never stand for text: special tokens and those that end a generation."""
        self.marks = self.separators | {int(number) for number in tokenizer.added_tokens_decoder}
        """Separators and all other added tokens: no text is ever merged into or out of them."""
        self.added_texts = frozenset(str(token) for token in tokenizer.added_tokens_decoder.values())
        """What stands in a text for an added token."""
        self.keeps_text = keeps_text(self._backend)
        """Decoding the ids of a text in NFC spells that text."""
        texts = (self.decode([number]) for number in sorted(self.separators))
        self.separator_texts = tuple(sorted({text for text in texts if text}, key=len, reverse=True))

    @classmethod
    def load(cls, model: str) -> "ChatTokenizer":
        """From a folder or a hub name. Raises ValueError that names what is missing."""
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise ValueError(f"tokenizer {model!r} needs the package transformers: {error}") from None
        logging.getLogger("transformers").setLevel(logging.ERROR)
        folder = Path(model).expanduser()
        if not folder.is_dir() and model.startswith((".", "~", "/")):
            raise ValueError(f"tokenizer folder {model!r} does not exist")
        try:
            return cls(AutoTokenizer.from_pretrained(str(folder) if folder.is_dir() else model), model)
        except Exception as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ValueError(f"tokenizer {model!r} cannot be loaded: {first}") from error

    def encode(self, text: str) -> Ids:
        """Ids of a text; special tokens in it become their ids, none is added."""
        if not text:
            return ids_array([])
        try:
            if self._backend is None:
                return ids_array(self._slow.encode(text, add_special_tokens=False))
            return ids_array(self._backend.encode_batch_fast([text], add_special_tokens=False)[0].ids)
        except (TypeError, UnicodeError):
            _require_encodable(text)
            raise

    def encode_after(self, context: str, text: str) -> Ids:
        """Ids of `text` where it stands right of `context` in a longer prompt (word-marker tokenizers put
        a marker in front of a text that stands alone). Where a token would straddle the seam, `text` is
        encoded by itself."""
        for left in (context, *_CONTEXTS) if context else _CONTEXTS:
            if (ids := self._split_after(left, text)) is not None:
                return ids
        return self.encode(text)

    def _split_after(self, left: str, text: str) -> Ids | None:
        head = self.encode(left)
        whole = self.encode(left + text)
        return whole[head.size :] if np.array_equal(whole[: head.size], head) else None

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """Text of ids: special tokens kept, spaces as they are."""
        numbers = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        if self._backend is None:
            return str(
                self._slow.decode(numbers, skip_special_tokens=False, clean_up_tokenization_spaces=False)
            )
        return str(self._backend.decode_batch([numbers], skip_special_tokens=False)[0])

    def decode_many(self, runs: Sequence[Sequence[int]]) -> list[str]:
        """Text of each run of ids, as `decode` gives it."""
        if self._backend is None:
            return [self.decode(run) for run in runs]
        return list(map(str, self._backend.decode_batch(runs, skip_special_tokens=False)))

    def vocabulary(self) -> Mapping[str, int]:
        """Ordinary tokens, as the tokenizer's file spells them, and their ids; {} without such a file."""
        if self._backend is None:
            return {}
        vocabulary: dict[str, int] = self._backend.get_vocab(with_added_tokens=False)
        return vocabulary

    def token_id(self, token: str) -> int | None:
        """The id of a text that is exactly one token, else None."""
        ids = self.encode(token)
        return int(ids[0]) if ids.size == 1 else None


def _require_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidMessages(f"text cannot be tokenised: {error.reason} at offset {error.start}") from None


def _special_ids(tokenizer: Any) -> frozenset[int]:
    """All ids flagged special, through the special-token attributes or the added-token table."""
    flagged = {int(number) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(flagged | {int(number) for number in tokenizer.all_special_ids})


def _vocab_size(tokenizer: Any, backend: Any) -> int:
    """One above the highest id, gaps and added tokens included."""
    highest = max(tokenizer.get_vocab().values(), default=-1) + 1
    return max(highest, len(tokenizer), backend.get_vocab_size() if backend is not None else 0)


def _fingerprint(tokenizer: Any, backend: Any) -> str:
    """Hex digest of the serialised tokenizer: equal digests encode alike."""
    state = backend.to_str() if backend is not None else json.dumps(sorted(tokenizer.get_vocab().items()))
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def _end_ids(tokenizer: Any, model: str) -> frozenset[int]:
    """Ids after which engines stop by configuration: the EOS token and those of generation_config.json."""
    ends = {tokenizer.eos_token_id} if isinstance(tokenizer.eos_token_id, int) else set()
    file = Path(model).expanduser() / "generation_config.json"
    if file.is_file():
        named = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id")
        ends |= set(named if isinstance(named, list) else [named])
    return frozenset(end for end in ends if isinstance(end, int))
