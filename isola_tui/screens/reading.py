"""A page to read: a title, lines that scroll, and Escape to leave."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

PAGE_CELLS = 70
"""The widest a line may be; the dialog's own width follows the screen's."""


class ReadingScreen(ModalScreen[None]):
    """Shows a text somebody asked for."""

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,f2", "dismiss(None)", "Close", id="page_close"),
        Binding("down", "scroll(1)", "Down", id="page_down"),
        Binding("up", "scroll(-1)", "Up", id="page_up"),
        Binding("pagedown,space", "page(1)", "Page down", id="page_pagedown"),
        Binding("pageup", "page(-1)", "Page up", id="page_pageup"),
    ]

    def __init__(self, title: str, close: str) -> None:
        super().__init__()
        self._title = title
        self._close = close

    def compose(self) -> ComposeResult:
        """The dialog with its text."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content(self._close)
            with VerticalScroll(can_focus=False):
                yield Static(id="page", markup=False)

    def write(self, content: Content) -> None:
        """Set the text."""
        self.query_one("#page", Static).update(content)

    @property
    def columns(self) -> int:
        """How many cells a line of the text has."""
        return max(20, min(PAGE_CELLS, int(self.app.size.width * 0.96) - 6))

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        scroll = self.query_one(VerticalScroll)
        if pages > 0:
            scroll.scroll_page_down(animate=False)
        else:
            scroll.scroll_page_up(animate=False)
