"""The last line: the keys one needs most, as they are bound now."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from isola_tui.lines import MUTED


class KeyLine(Widget):
    """Keys and what they do, as many as fit."""

    def __init__(self) -> None:
        super().__init__(id="keyline")
        self._keys: tuple[tuple[str, str], ...] = ()

    def show(self, keys: Sequence[tuple[str, str]]) -> None:
        """Draw (key, word) pairs."""
        if tuple(keys) != self._keys:
            self._keys = tuple(keys)
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row."""
        return 1

    def render(self) -> Content:
        """Whole pairs only."""
        drawn = Content.empty()
        for key, word in self._keys:
            gap = "  " if drawn else ""
            more = Content.assemble(gap, (key, "bold $text-accent"), " ", (word, MUTED))
            if drawn.cell_length + more.cell_length > self.content_size.width:
                break
            drawn = drawn + more
        return drawn
