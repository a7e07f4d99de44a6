"""Word counts: a group under addition, and bytes that come back as they were."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.attribution.words import MAX_WORDS, WordCounts, words_of
from isola_core.errors import StoreError

TEXTS = st.lists(st.text(alphabet="ab c计费-/'", max_size=12), max_size=8)


def counted(texts: list[str]) -> WordCounts:
    counts = WordCounts()
    counts.add_all(texts)
    return counts


@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_subtracting_is_exact_in_any_order(
    kept: list[str], gone: list[str], random: Random
) -> None:
    counts = WordCounts()
    steps = [(text, 1) for text in kept + gone] + [(text, -1) for text in gone]
    random.shuffle(steps)
    for text, by in steps:
        if by > 0:
            counts.add(text)
        else:
            counts.subtract(text)
    assert counts == counted(kept)
    assert counts.pack() == counted(kept).pack()


@given(TEXTS)
def test_a_rebuild_gives_the_same_bytes(texts: list[str]) -> None:
    one_by_one = WordCounts()
    for text in reversed(texts):
        one_by_one.add(text)
    assert one_by_one.pack() == counted(texts).pack()
    assert WordCounts.unpack(one_by_one.pack()) == one_by_one


def test_a_word_counts_once_a_message() -> None:
    counts = counted(["refund refund refund", "refund the invoice"])
    assert counts.messages == 2
    assert dict(counts.words) == {"refund": 2, "the": 1, "invoice": 1}


def test_a_reader_keeps_the_view_it_took() -> None:
    counts = counted(["invoice"])
    view = counts.words
    counts.add("refund")
    counts.subtract("invoice")
    assert dict(view) == {"invoice": 1}
    assert dict(counts.words) == {"refund": 1}


@given(st.binary(max_size=60))
def test_damaged_bytes_are_refused_and_nothing_else_happens(blob: bytes) -> None:
    with suppress(StoreError):
        counts = WordCounts.unpack(blob)
        assert WordCounts.unpack(counts.pack()) == counts


def test_another_format_is_refused() -> None:
    with pytest.raises(StoreError, match="another version"):
        WordCounts.unpack(b"\x93\x02\x00\x80")


def test_a_huge_message_counts_its_first_words_only() -> None:
    text = " ".join(f"w{number}" for number in range(200_000))
    counts = counted([text])
    assert len(counts.words) == MAX_WORDS == len(words_of(text))
    assert "w0" in counts.words
    counts.subtract(text)
    assert counts == WordCounts()


def test_counts_are_compact() -> None:
    counts = counted([f"word{number} thing{number}" for number in range(1_000)])
    assert len(counts.pack()) < 2_000 * 16
