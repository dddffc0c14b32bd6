"""Whether served ids spell a prompt text, told by decoding them instead of tokenising the text.

Pure. Decoding costs a sixth of tokenising. Invariant: "yes" means that the comparator finds nothing between
the served ids and the tokenised text; "no" means that the text has to be tokenised to know.
"""

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sessions_app.packing import Ids
from sessions_app.rendering.comparator import ComparisonRules
from sessions_app.rendering.tokenizer import ChatTokenizer


class Spelling:
    """Segments of ids and of texts under one family's rules. Immutable; shared between threads."""

    def __init__(self, tokenizer: ChatTokenizer, rules: ComparisonRules) -> None:
        self._tokenizer = tokenizer
        self._special = np.fromiter(rules.special_ids, dtype=np.int32)
        self._trailing = np.fromiter(rules.trailing_ids, dtype=np.int32)
        self._separators = frozenset(tokenizer.decode([number]) for number in rules.special_ids)
        self._tails = tuple(tokenizer.decode([number]) for number in rules.trailing_ids)
        longest_first = sorted(self._separators, key=len, reverse=True)
        separator = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        self._split = separator.split
        self._usable = (
            tokenizer.keeps_text
            and bool(self._separators)
            and all(map(self._is_own, rules.special_ids | rules.trailing_ids))
            and self._separators <= tokenizer.added_texts
            and not _overlapping(self._separators, tokenizer.added_texts, separator)
        )

    def spells(self, served: Ids, text: str) -> bool:
        """Whether the comparator is sure to find no difference. `served`: ids, shape (n,)."""
        if not self._usable or not unicodedata.is_normalized("NFC", text):
            return False
        wanted = self._without_tail([part for part in self._split(text) if part])
        if wanted and wanted[-1].endswith(self._tails):
            return False
        ids, places = self._located(served)
        cuts = np.unique(np.concatenate([places, places + 1]))
        spoken = self._tokenizer.decode_many([part.tolist() for part in np.split(ids, cuts) if part.size])
        return wanted == spoken and sum(part in self._separators for part in spoken) == places.size

    def _is_own(self, number: int) -> bool:
        """Whether an id's text is read as that very id: not half a letter, nor another's text as well."""
        return self._tokenizer.token_id(self._tokenizer.decode([number])) == number

    def _without_tail(self, parts: list[str]) -> list[str]:
        end = len(parts)
        while end and parts[end - 1] in self._tails:
            end -= 1
        return parts[:end]

    def _located(self, served: Ids) -> tuple[Ids, npt.NDArray[np.intp]]:
        """The ids up to the last one that is compared, and where the separators among them stand."""
        compared = np.flatnonzero(~np.isin(served, self._trailing))
        ids = served[: int(compared[-1]) + 1 if compared.size else 0]
        return ids, np.flatnonzero(np.isin(ids, self._special))


def _overlapping(separators: frozenset[str], added: Iterable[str], separator: re.Pattern[str]) -> bool:
    """Whether an added token's text can take a separator's, or a part of it, as its own."""
    heads = {text[:end] for text in separators for end in range(1, len(text))}
    tails = {text[start:] for text in separators for start in range(1, len(text))}
    return any(
        separator.search(text[1:])
        or separator.search(text[:-1])
        or any(text[start:] in heads or text[: len(text) - start] in tails for start in range(len(text)))
        for text in added
    )
