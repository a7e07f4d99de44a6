"""Sending the text in the entry another way: first of all, raw, everything to one project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from isola_tui.lines import MUTED, row
from isola_tui.presentation import Presentation
from isola_tui.screens.composing import Composer
from isola_tui.widgets.entry import Entry

WAYS: Final = {"urgent": "i", "raw": "r", "lock": "l"}
"""By the act's name: its letter. A refused text goes unstored without this list."""

LINE_CELLS = 62


class SendAs(ModalScreen[str | None]):
    """Ends with the name of the way, or None."""

    CSS_PATH = "modal.tcss"
    DEFAULT_CSS = "SendAs .dialog { width: 68; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="send_as_back")
    ]

    def __init__(self, ways: Sequence[str], presentation: Presentation) -> None:
        super().__init__()
        self._ways = ways
        self._presentation = presentation

    def compose(self) -> ComposeResult:
        """The ways, each with its letter and its own key."""
        draw = self._presentation
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(draw.texts("send_as.title"))
            dialog.border_subtitle = Content(draw.texts("menu.keys"))
            lines = []
            for each in self._ways:
                said = draw.texts(f"action.{each}")
                left = Content.assemble((f"{WAYS[each]}  ", "bold $text-accent"), said)
                right = Content.styled(draw.keys.get(each, ""), MUTED)
                lines.append(Option(row(left, right, LINE_CELLS), each))
            yield OptionList(*lines, markup=False)

    def on_key(self, event: events.Key) -> None:
        """A letter does it."""
        for each in self._ways:
            if event.character == WAYS[each]:
                event.stop()
                self.dismiss(each)
                return

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


def send_another_way(screen: Screen[None], composer: Composer, act: str) -> None:
    """Do what `Entry.Wanted` asks for: one of the ways, or the list of them."""
    match act:
        case "lock":
            composer.toggle_lock()
        case "raw":
            composer.toggle_raw()
        case "urgent":
            screen.query_one(Entry).action_send(urgent=True)
        case _ if composer.refused:
            composer.send_unstored()
        case _:

            def chosen(way: str | None) -> None:
                if way is not None:
                    send_another_way(screen, composer, way)

            screen.app.push_screen(SendAs(tuple(WAYS), composer.presentation), chosen)
