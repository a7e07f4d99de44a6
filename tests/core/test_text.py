"""Free text: safe, comparable, linear, whatever it holds."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.text import (
    MAX_TERM,
    fold,
    is_blank,
    name_key,
    normalise_message,
    safe_label,
    terms,
)

ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()))
"""Lone surrogates included."""


@given(ANY)
def test_nothing_raises_and_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_message(text)
    assert normalise_message(once) == once
    assert name_key(name_key(text)) == name_key(text)
    assert fold(fold(text)) == fold(text)
    assert isinstance(is_blank(text), bool)
    terms(text)


@given(ANY)
def test_a_normalised_message_can_be_encoded_and_holds_no_control_characters(text: str) -> None:
    message = normalise_message(text)
    message.encode("utf-8")
    assert not [
        letter
        for letter in message
        if unicodedata.category(letter) == "Cc" and letter not in "\n\t"
    ]


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs"))))
def test_normalising_leaves_everything_else_as_it_is(text: str) -> None:
    assert normalise_message(text) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("tab\there", "tab\there"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("a\x00b\x7fc\x85d", "abcd"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("修复\u3000bug 👍\u200d🔧", "修复\u3000bug 👍\u200d🔧"),
    ],
)
def test_line_ends_controls_and_surrogates_are_repaired(text: str, message: str) -> None:
    assert normalise_message(text) == message


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "\u3000", "\u200b\u200d\ufeff", "\u2060\u00ad", "\u3164", "\x00\x1b", "\ufe0f"],
)
def test_what_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "👍", "好", " a ", "\u200ba"])
def test_what_shows_something_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix the pre-edit hook", ["fix", "the", "pre-edit", "pre", "edit", "hook"]),
        ("C++ and C#", ["c++", "and", "c#"]),
        ("it's billing's", ["it", "billing"]),
        ("don't", ["don't"]),
        ("src/a_b.py:12", ["src/a_b.py:12", "src", "a", "b", "py", "12"]),
        ("https://example.com.", ["https", "example.com", "example", "com"]),
        ("ＡＢＣ Straße", ["abc", "strasse"]),
        ("计费", ["计费"]),
        ("参考计费那套", ["参考", "考计", "计费", "费那", "那套"]),
        ("修 bug", ["修", "bug"]),
        ("修复billing的bug", ["修复", "billing", "的", "bug"]),
        ("カード決済", ["カー", "ード", "ド決", "決済"]),
        ("결제", ["결제"]),
        ("Ошибка", ["ошибка"]),
        ('AND OR "NEAR( *', ["and", "or", "near"]),
        ("", []),
        ("?! 👍", []),
    ],
)
def test_terms_are_the_words_people_look_for(text: str, words: list[str]) -> None:
    assert terms(text) == words


@given(
    st.text(
        alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2, max_size=2
    )
)
def test_a_two_character_chinese_word_is_a_term(word: str) -> None:
    assert terms(word) == [word]
    assert word in terms(f"请看{word}的问题")


@given(ANY)
def test_terms_are_short_and_never_blank(text: str) -> None:
    assert all(0 < len(term) <= MAX_TERM and not term.isspace() for term in terms(text))


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a/",
        "修",
        "a\u0315\u0300",
        "\u0315\u0300",
        "@",
        "''",
        "-_",
        "㍿",
        "\u3164",
        "\x1b[",
        "a\r",
    ],
)
def test_a_megabyte_takes_about_ten_times_as_long_as_a_tenth(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.process_time()
        terms(text)
        name_key(text)
        normalise_message(text)
        is_blank(text)
        safe_label(text, 80)
        return time.process_time() - started

    small = min(seconds(100_000) for _ in range(2))
    assert seconds(1_000_000) < 40 * max(small, 0.005)


@pytest.mark.parametrize(
    "name", ["My App", "my-app", "MY_APP", "myapp", " my  app ", "ｍｙａｐｐ", "my\u200bapp"]
)
def test_spellings_of_one_name_are_the_same_name(name: str) -> None:
    assert name_key(name) == "myapp"


def test_different_names_stay_different() -> None:
    names = ["billing", "billings", "计费", "计费2", "node.js", "nodejs", "c", "c++", "a/b"]
    assert len({name_key(name) for name in names}) == len(names)
    assert name_key(" -_ ") == ""


@given(ANY, st.integers(min_value=0, max_value=40))
def test_a_label_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    label = safe_label(text, limit)
    assert len(label) <= limit
    assert label.isprintable()
    assert label == label.strip()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("two\nlines\tand  gaps ", "two lines and gaps"),
        ("\x1b]0;title\x07bell", "]0;titlebell"),
        ("abc\u202etxt.exe", "abctxt.exe"),
        ("x" * 30, "x" * 19 + "…"),
        ("exactly twenty chars", "exactly twenty chars"),
    ],
)
def test_a_label_holds_no_trick_and_shows_where_it_was_cut(text: str, label: str) -> None:
    assert safe_label(text, 20) == label
