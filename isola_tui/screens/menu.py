"""What can be done with one message: a short list, each act with its letter and its own key."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from isola_core.model import DecisionView
from isola_tui.lines import MUTED, one_line, row
from isola_tui.presentation import Presentation
from isola_tui.screens.acts import MESSAGE_ACTS

LINE_CELLS = 56


class MessageMenu(ModalScreen[str | None]):
    """Ends with the name of the act, or None."""

    CSS_PATH = "modal.tcss"
    DEFAULT_CSS = "MessageMenu .dialog { width: 62; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="menu_back")
    ]

    def __init__(self, view: DecisionView, presentation: Presentation) -> None:
        super().__init__()
        self._view = view
        self._presentation = presentation
        self._acts = [each for each in MESSAGE_ACTS if each.fits(view)]

    def compose(self) -> ComposeResult:
        """The message and the acts that fit it."""
        draw = self._presentation
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(draw.texts("menu.title"))
            dialog.border_subtitle = Content(draw.texts("menu.keys"))
            quoted = one_line(self._view.message.text, 160)
            yield Static(Content(quoted), classes="quoted", markup=False)
            lines = []
            for each in self._acts:
                left = Content.assemble(
                    (f"{each.letter}  ", "bold $text-accent"), draw.texts(f"action.{each.name}")
                )
                key = "hold" if each.name == "release" else each.name
                right = Content.styled(draw.keys.get(key, ""), MUTED)
                lines.append(Option(row(left, right, LINE_CELLS), each.name))
            yield OptionList(*lines, markup=False)

    def on_key(self, event: events.Key) -> None:
        """A letter does it."""
        for each in self._acts:
            if event.character == each.letter:
                event.stop()
                self.dismiss(each.name)
                return

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)
