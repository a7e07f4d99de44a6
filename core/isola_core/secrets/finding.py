"""What a detector reports, and the views of a text that detectors read."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

MARKER: Final = re.compile(r"\[masked [a-z][a-z-]{0,30}\]")
"""What `mask` writes. Kinds are named so that none contains a word that `pairs` looks for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One credential: what kind it is, and where it stands in the text (`text[start:end]`)."""

    kind: str
    start: int
    end: int


class View:
    """A text without the places where a line break or the like cuts a credential in two.

    `text` is what remains; `origin` leads back. `joint` matches what is left out. A match in the
    view is made of pieces: the stretches between two joints.
    """

    __slots__ = ("_ends", "_shifts", "source", "text")

    def __init__(self, source: str, joint: re.Pattern[str]) -> None:
        self.source = source
        self._ends = [0]
        self._shifts = [0]
        parts: list[str] = []
        at = length = 0
        for match in joint.finditer(source):
            parts.append(source[at : match.start()])
            length += match.start() - at
            at = match.end()
            if length == self._ends[-1]:
                self._shifts[-1] = at - length
            else:
                self._ends.append(length)
                self._shifts.append(at - length)
        parts.append(source[at:])
        self.text = "".join(parts) if at else source

    def origin(self, at: int) -> int:
        """Where the view's character `at` stands in the source."""
        return at + self._shifts[bisect_right(self._ends, at) - 1]

    def span(self, kind: str, start: int, end: int) -> Finding:
        """A finding of the view, told in the source's offsets."""
        return Finding(kind, self.origin(start), self.origin(end - 1) + 1)

    def pieces(self, start: int, end: int) -> list[int]:
        """The ends of the pieces of `start:end`, at most the first sixteen."""
        first = bisect_right(self._ends, start)
        inside = self._ends[first : first + 16]
        cuts = [each for each in inside if each < end]
        return cuts if len(cuts) == 16 else [*cuts, end]

    def before(self, at: int) -> str:
        """The source's character in front of the view's `at`, "" at the beginning."""
        position = self.origin(at)
        return self.source[position - 1] if position else ""


def looks_random(value: str) -> bool:
    """Whether it has a digit, or an upper-case letter that does not begin a word of prose."""
    return any(each.isdigit() for each in value) or any(each.isupper() for each in value[1:])
