"""Text of people, models and files made safe to show, and lines of `Content` put together.

Nothing here goes through markup. What could act on a terminal, or turn the reading direction, is
made visible (`plain`) or removed (`one_line`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from textual.content import Content

from isola_core.text import safe_label

MUTED: Final = "$foreground 62%"
"""The style of what is there but not in front."""

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2060\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Text of several lines with everything that could act on the terminal made visible."""
    return visible(text.replace("\r\n", "\n").replace("\t", "    "))


def visible(text: str) -> str:
    """The text, each character that could act on the terminal replaced by one that is seen."""
    return _UNSAFE.sub(_seen, text)


def one_line(text: str, limit: int) -> str:
    """One printable line of at most `limit` characters."""
    return safe_label(text, limit)


def muted(text: str) -> Content:
    """A text that stands back."""
    return Content.styled(text, MUTED)


def wrapped(content: Content, width: int) -> list[Content]:
    """Lines of at most `width` cells; none for an empty text."""
    return content.wrap(max(4, width)) if content else []


def barred(lines: Sequence[Content], bar: str) -> list[Content]:
    """The lines behind a bar, such as a quotation's."""
    if not bar:
        return list(lines)
    return [Content.assemble((bar, MUTED), line) for line in lines]


def row(left: Content, right: Content, width: int) -> Content:
    """Two pieces on one line, at its ends; the left one gives way."""
    if not right:
        return left.truncate(width, ellipsis=True)
    room = width - right.cell_length - 1
    if room < 4:
        return left.truncate(width, ellipsis=True)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), " ", right)


def _seen(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"
