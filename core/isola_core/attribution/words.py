"""Additive counts of the words of a project's messages; a correction subtracts exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from isola_core.errors import StoreError
from isola_core.text import terms

MAX_CHARS: Final = 8_000
"""Characters of one message that attribution looks at."""

MAX_WORDS: Final = 200
"""Different words of one message that are counted."""

_FORMAT: Final = 1


def words_of(text: str, limit: int = MAX_WORDS) -> tuple[str, ...]:
    """The first `limit` different words of a message, English plurals as singulars, in order."""
    return tuple(dict.fromkeys(map(singular, terms(text[:MAX_CHARS]))))[:limit]


def singular(word: str) -> str:
    """An English plural as its singular, roughly: `invoices` and `invoice` are one word."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "sui" or not word.isascii():
        return word
    return word[:-3] + "y" if len(word) > 4 and word.endswith("ies") else word[:-1]


class _Packed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    format: int
    messages: int
    words: dict[str, int]


class WordCounts:
    """In how many messages of one project each word appears.

    Counts form a group: adding and subtracting the same texts in any order gives the same numbers,
    so a count may be below zero until its message is added. `words` is replaced, never changed in
    place: whoever holds it keeps a consistent view, also from another thread.
    """

    __slots__ = ("_messages", "_words")

    def __init__(self, words: Mapping[str, int] | None = None, messages: int = 0) -> None:
        self._words = {word: count for word, count in (words or {}).items() if count}
        self._messages = messages

    @property
    def words(self) -> Mapping[str, int]:
        """Word -> number of messages that hold it; no zeros."""
        return self._words

    @property
    def messages(self) -> int:
        """Messages added less messages subtracted."""
        return self._messages

    def add(self, text: str) -> None:
        """Count one message."""
        self._change((text,), 1)

    def add_all(self, texts: Iterable[str]) -> None:
        """Count many messages in one step; `add` copies the counts each time."""
        self._change(texts, 1)

    def subtract(self, text: str) -> None:
        """Take one message out again, exactly."""
        self._change((text,), -1)

    def _change(self, texts: Iterable[str], by: int) -> None:
        words = dict(self._words)
        messages = self._messages
        for text in texts:
            messages += by
            for word in words_of(text):
                count = words.get(word, 0) + by
                if count:
                    words[word] = count
                else:
                    del words[word]
        self._words, self._messages = words, messages

    def pack(self) -> bytes:
        """The counts as bytes; equal counts give equal bytes."""
        packed = _Packed(_FORMAT, self._messages, dict(sorted(self._words.items())))
        return msgspec.msgpack.encode(packed)

    @classmethod
    def unpack(cls, blob: bytes) -> WordCounts:
        """The counts of `pack`. Raises `StoreError` for anything else: they can be rebuilt."""
        try:
            packed = msgspec.msgpack.decode(blob, type=_Packed)
        except msgspec.MsgspecError as error:
            raise StoreError("the stored word counts are damaged; they can be rebuilt") from error
        if packed.format != _FORMAT:
            raise StoreError("the stored word counts are of another version; they can be rebuilt")
        return cls(packed.words, packed.messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordCounts):
            return NotImplemented
        return self._messages == other._messages and self._words == other._words

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"WordCounts({len(self._words)} words, {self._messages} messages)"
