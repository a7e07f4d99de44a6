"""Going somewhere: the feed, or one session's pane, by number, name or arrows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from isola_core.model import Target
from isola_core.text import name_key
from isola_tui.board import Activity
from isola_tui.drawing.panes import unread
from isola_tui.lines import MUTED
from isola_tui.presentation import GLYPHS, Presentation


class GoTo(ModalScreen[Target | str]):
    """Ends with a session, `feed` for the feed, or `stay`."""

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('stay')", "Back", id="go_back"),
        Binding("up,ctrl+p", "step(-1)", "Up", id="go_up"),
        Binding("down,ctrl+n,tab", "step(1)", "Down", id="go_down"),
    ]

    def __init__(
        self,
        panes: Sequence[Target],
        presentation: Presentation,
        activities: Mapping[str, Activity],
        unread: Mapping[str, int],
    ) -> None:
        super().__init__()
        self._panes = panes
        self._presentation = presentation
        self._activities = activities
        self._unread = unread

    def compose(self) -> ComposeResult:
        """The filter and the list."""
        texts = self._presentation.texts
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(texts("go.title"))
            dialog.border_subtitle = Content(texts("go.keys"))
            yield Input(placeholder=texts("choose.filter"))
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Everything first."""
        self._fill("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        """Fewer of them by name; a digit goes there at once."""
        mains = [each for each in self._panes if not each.lane]
        typed = event.value
        if len(typed) == 1 and typed.isascii() and typed.isdigit() and int(typed) <= len(mains):
            self.dismiss(mains[int(typed) - 1] if int(typed) else "feed")
            return
        self._fill(typed)

    def _fill(self, wanted: str) -> None:
        found = self.query_one(OptionList)
        found.clear_options()
        key = name_key(wanted)
        number = 0
        if not key:
            found.add_option(Option(self._line(0, None), "feed"))
        for place, target in enumerate(self._panes):
            number += not target.lane
            if key in name_key(self._presentation.aimed(target, 80)):
                found.add_option(Option(self._line(number, target), str(place)))
        if found.option_count:
            found.highlighted = 0
        else:
            nothing = Content.styled(self._presentation.texts("choose.nothing"), MUTED)
            found.add_option(Option(nothing, disabled=True))

    def _line(self, number: int, target: Target | None) -> Content:
        draw = self._presentation
        if target is None:
            return Content.assemble(("0 ", MUTED), "  ", draw.texts("feed.title"))
        digit = f"{number} " if number < 10 and not target.lane else "  "
        glyph, style = GLYPHS[self._activities.get(target.project, Activity.ASLEEP)]
        return Content.assemble(
            (digit, MUTED),
            ("  " if target.lane else f"{glyph} ", style),
            draw.aimed(target, 40),
            unread(0 if target.lane else self._unread.get(target.project, 0)),
        )

    def action_step(self, step: int) -> None:
        """Move the highlight; the filter keeps the keyboard."""
        found = self.query_one(OptionList)
        if step < 0:
            found.action_cursor_up()
        else:
            found.action_cursor_down()

    @on(Input.Submitted)
    def _taken(self) -> None:
        found = self.query_one(OptionList)
        if found.highlighted is not None:
            self._go(found.get_option_at_index(found.highlighted).id)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self._go(event.option.id)

    def _go(self, option: str | None) -> None:
        if option == "feed":
            self.dismiss("feed")
        elif option is not None:
            self.dismiss(self._panes[int(option)])
