"""Help: what the program is, what the glyphs mean, and every key as it is bound now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from isola_tui.lines import MUTED
from isola_tui.presentation import Presentation
from isola_tui.screens.reading import ReadingScreen

SHOWN: Final = (
    *("send", "newline", "target_next", "target_previous", "lock", "urgent", "raw", "send_as"),
    *("answer", "pane", "go_to", "search", "correct", "mark", "undo"),
    *("withdraw", "menu", "why", "hold", "commit", "stop", "resend", "settle", "edit", "fold"),
    *("previous", "next", "new_project", "scroll_up", "scroll_down", "back"),
    *("palette", "help", "quit", "interrupt"),
)
"""The acts of the key table, in the order in which a person needs them."""


class HelpScreen(ReadingScreen):
    """The help."""

    def __init__(self, presentation: Presentation, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__(presentation.texts("help.title"), presentation.texts("help.close"))
        self._presentation = presentation
        self._keys = dict(keys)

    def on_mount(self) -> None:
        """Write it."""
        texts = self._presentation.texts
        shown = [
            (self._keys[each], texts(f"action.{each}")) for each in SHOWN if each in self._keys
        ]
        width = max((len(key) for key, _ in shown), default=0) + 2
        lines = [
            *Content(texts("help.intro")).wrap(self.columns),
            Content.empty(),
            *Content.styled(texts("help.glyphs"), "$text-accent").wrap(self.columns),
            Content.empty(),
            *Content.styled(texts("help.keys_note"), MUTED).wrap(self.columns),
            Content.empty(),
            *(
                Content.assemble((key.ljust(width), "bold $text-accent"), said)
                for key, said in shown
            ),
        ]
        self.write(Content("\n").join(lines))
