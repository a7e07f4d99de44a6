"""Pasted text stays text, whatever stands in it.

Textual 8.2 reads an ESC inside of a bracketed paste as the start of a key: up to 32 characters
behind it, Enter among them, would be pressed. Terminals take ESC out of what they paste; tmux does
not. Here it is taken out before Textual's parser sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.message import Message

START: Final = "\x1b[200~"
END: Final = "\x1b[201~"


class PasteFilter:
    """Takes ESC out of pastes in a stream that comes in pieces of any size."""

    def __init__(self) -> None:
        self._pasting = False
        self._kept = ""
        """While pasting: what may begin the mark of the end; it waits for the rest."""
        self._passed = ""
        """Else: what has passed already and may begin the mark of the start."""

    def __call__(self, data: str) -> str:
        """The next piece."""
        done: list[str] = []
        while data:
            data = self._paste(data, done) if self._pasting else self._typed(data, done)
        return "".join(done)

    def _typed(self, data: str, done: list[str]) -> str:
        whole = self._passed + data
        head, mark, rest = whole.partition(START)
        done.append((head + mark)[len(self._passed) :])
        self._pasting = bool(mark)
        self._passed = "" if mark else _begun(whole, START)
        return rest

    def _paste(self, data: str, done: list[str]) -> str:
        head, mark, rest = (self._kept + data).partition(END)
        self._kept = "" if mark else _begun(head, END)
        done += [head[: len(head) - len(self._kept)].replace("\x1b", ""), mark]
        self._pasting = not mark
        return rest


def _begun(text: str, mark: str) -> str:
    """The end of a text that may be the beginning of a mark."""
    return next((mark[:n] for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), "")


class PasteParser(XTermParser):
    """Textual's parser behind the filter."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._filter = PasteFilter()

    def feed(self, data: str) -> Iterable[Message]:
        """Parse the next piece of what the terminal sends; "" ends it."""
        if not data:
            return super().feed(data)
        kept = self._filter(data)
        return super().feed(kept) if kept else ()


def disarm_pastes() -> None:
    """Have the terminal's driver use this parser."""
    linux_driver.XTermParser = PasteParser  # type: ignore[attr-defined]
