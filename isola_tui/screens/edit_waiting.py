"""Changing the text of a message that still waits for its session."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from isola_core.model import DecisionView
from isola_core.text import is_blank
from isola_tui.presentation import Presentation
from isola_tui.widgets.entry import Entry


class EditWaiting(ModalScreen[str | None]):
    """Ends with the new text, or None.

    `again`: the text was sent unstored and is gone, so the entry begins empty.
    """

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="edit_back")
    ]

    def __init__(
        self, view: DecisionView, presentation: Presentation, *, again: bool = False
    ) -> None:
        super().__init__()
        self._view = view
        self._presentation = presentation
        self._again = again

    def compose(self) -> ComposeResult:
        """The text, ready to be changed."""
        texts = self._presentation.texts
        with Vertical(classes="dialog") as dialog:
            project = self._presentation.name(self._view.project)
            title = "edit.again" if self._again else "edit.title"
            dialog.border_title = Content(texts(title, project=project))
            dialog.border_subtitle = Content(texts("edit.keys"))
            yield Entry()

    def on_mount(self) -> None:
        """The cursor stands at the end."""
        entry = self.query_one(Entry)
        entry.load_message("" if self._again else self._view.message.text)
        entry.focus()

    def on_entry_submitted(self, event: Entry.Submitted) -> None:
        """Enter keeps the text."""
        event.stop()
        if not is_blank(event.text):
            self.dismiss(event.text)
