"""Free text, made safe and comparable: messages, search words, names, one-line labels.

Everything here takes any string, never raises and takes linear time, because the text comes from
people, models, files and processes.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_TERM: Final = 64
"""Characters of one search word; the rest of a longer one is not kept."""

_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_BLANK_LETTERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Drawn as nothing although their category says letter, mark or symbol."""

UNSPACED: Final = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"  # Hangul
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
"""Inside of a character class: scripts whose words are not set apart by spaces, and Hangul, whose
endings stick to the word."""

_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0981-\u0dff"
)
"""Marks that belong to the letter before them, and the Indic blocks that are full of them."""

_LETTERS: Final = f"(?:(?![{UNSPACED}_])[\\w{_MARKS}])+"
_TERM: Final = re.compile(
    f"(?P<run>[{UNSPACED}]+)"
    f"|(?P<word>{_LETTERS}(?:['\u2019]{_LETTERS})?(?:[-_./:]{_LETTERS})*(?:\\+\\+|\\#)?)"
)
_PARTS: Final = re.compile("[-_./:]")
_POSSESSIVE: Final = re.compile("['\u2019]s$")
_NAME_GAPS: Final = re.compile(
    "[\\s\\-_\x00-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]+"
)
"""White space, `-`, `_`, control and format characters: no part of a name."""
_UNSPACED_LETTER: Final = re.compile(f"[{UNSPACED}]")

_STRIDE: Final = 512
"""Characters normalised at once. CPython sorts a run of combining marks by insertion, in quadratic
time: a megabyte of them in one go would take minutes."""


def normalise_message(text: str) -> str:
    """The text as it is stored and sent: LF line ends, no control characters but LF and TAB.

    ESC sequences lose their ESC, the rest of them stays as visible text. Lone surrogates become
    U+FFFD, so that the result can always be encoded. Nothing else changes. Idempotent.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def is_blank(text: str) -> bool:
    """Whether a person would see nothing: white space, zero-width and control characters only."""
    return all(
        letter.isspace()
        or letter in _BLANK_LETTERS
        or "\ufe00" <= letter <= "\ufe0f"
        or unicodedata.category(letter) in ("Cf", "Cc")
        for letter in text
    )


def terms(text: str) -> list[str]:
    """The words of a text for search and learning, in order, repeated words repeated.

    Case and compatibility forms are folded. A word joined by `-_./:` gives the joined form and its
    parts (`pre-edit` -> `pre-edit`, `pre`, `edit`). `C++` and `C#` keep their sign, `billing's` is
    `billing`. Runs of Han, kana, Hangul and other scripts without spaces give bigrams, a run of one
    character gives itself. A term has at most `MAX_TERM` characters.
    """
    found: list[str] = []
    for match in _TERM.finditer(fold(text)):
        if match.lastgroup == "run":
            run = match.group()
            if len(run) == 1:
                found.append(run)
            else:
                found.extend(run[at : at + 2] for at in range(len(run) - 1))
            continue
        word = match.group()
        parts = _PARTS.split(word)
        if len(parts) > 1 and len(word) <= MAX_TERM:
            found.append(_POSSESSIVE.sub("", word))
        found.extend(_POSSESSIVE.sub("", part)[:MAX_TERM] for part in parts)
    return found


def name_key(name: str) -> str:
    """A name as names are compared: `My App`, `my-app` and `MyApp` are the same name.

    NFKC and case folded, white space, `-`, `_` and invisible characters removed. Idempotent. The
    key of a name of nothing but those is empty and equals no name.
    """
    key, before = name, None
    while key != before:  # taking a space out may let two characters compose
        before = key
        key = _NAME_GAPS.sub("", fold(key))
    return key


def safe_label(text: str, limit: int) -> str:
    """One printable line of at most `limit` characters, for titles and logs.

    White space becomes single spaces; control, zero-width, bidirectional, unassigned and private
    characters are removed. A cut is shown by an ellipsis.
    """
    kept: list[str] = []
    for letter in text:
        if letter.isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif letter.isprintable():
            kept.append(letter)
        elif "\ud800" <= letter <= "\udfff":
            kept.append("\ufffd")
        if len(kept) > limit + 1:
            break
    label = "".join(kept).strip()
    if len(label) <= limit:
        return label
    return label[: limit - 1].rstrip() + "…" if limit > 0 else ""


def fold(text: str) -> str:
    """Case and compatibility forms folded: the form in which text is compared. Idempotent."""
    if text.isascii():
        return text.casefold()
    folded = _nfkc(_nfkc(text).casefold())
    again = folded.casefold()
    return folded if again == folded else _nfkc(again)


def is_unspaced(letter: str) -> bool:
    """Whether a character belongs to a script whose words are not set apart by spaces."""
    return _UNSPACED_LETTER.match(letter) is not None


def _nfkc(text: str) -> str:
    """NFKC in pieces, cut before a space where there is one: bounded time for any text."""
    if text.isascii():
        return text
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = start + _STRIDE
        if end < len(text):
            space = text.rfind(" ", start + _STRIDE // 2, end)
            end = space if space > 0 else end
        pieces.append(unicodedata.normalize("NFKC", text[start:end]))
        start = end
    return "".join(pieces)
