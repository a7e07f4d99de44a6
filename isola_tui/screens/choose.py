"""Choosing a project from a ranked list: arrows, or a few letters of its name, then Enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option as ListOption

from isola_core.model import DecisionView
from isola_core.text import name_key
from isola_tui.board import Board
from isola_tui.lines import MUTED, one_line
from isola_tui.presentation import Presentation


@dataclass(frozen=True, slots=True)
class Option:
    """A project to choose, its confidence where attribution ranked it, and a reason."""

    project: str
    confidence: float | None = None
    reason: str = ""


def options(board: Board, view: DecisionView, *, keep_own: bool = False) -> list[Option]:
    """The projects that a message may be moved to: its candidates first, best first.

    `keep_own` offers the one that it is in too, for messages of several projects.
    """
    ranked = {each.project: each for each in view.attribution.candidates}
    listed = {each.id: each for each in board.listed()}
    order = [*(each for each in ranked if each in listed), *listed]
    return [
        Option(
            project,
            ranked[project].confidence if project in ranked else None,
            ranked[project].reason if project in ranked else listed[project].description,
        )
        for project in dict.fromkeys(order)
        if keep_own or project != view.project
    ]


class ChooseProject(ModalScreen[str | None]):
    """Ends with the id of the project, or None."""

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="choose_back"),
        Binding("up,ctrl+p", "step(-1)", "Up", id="choose_up"),
        Binding("down,ctrl+n,tab", "step(1)", "Down", id="choose_down"),
    ]

    def __init__(
        self,
        title: str,
        view: DecisionView,
        options: Sequence[Option],
        presentation: Presentation,
        count: int = 1,
    ) -> None:
        super().__init__()
        self._title = title
        self._count = count
        self._view = view
        self._options = options
        self._presentation = presentation

    def compose(self) -> ComposeResult:
        """The message, the filter, the list."""
        draw = self._presentation
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(draw.texts(self._title))
            dialog.border_subtitle = Content(draw.texts("choose.keys"))
            quoted = one_line(self._view.message.text, 200)
            if self._count > 1:
                quoted = draw.texts.count("choose.several", self._count)
            yield Static(Content(quoted), classes="quoted", markup=False)
            yield Input(placeholder=draw.texts("choose.filter"))
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Everything first."""
        self._fill("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        self._fill(event.value)

    def _fill(self, wanted: str) -> None:
        key = name_key(wanted)
        fitting = [each for each in self._options if key in self._key(each)]
        starting = [each for each in fitting if self._key(each).startswith(key)]
        rest = [each for each in fitting if each not in starting]
        shown = [*starting, *rest]
        width = max(
            (Content(self._presentation.name(each.project)).cell_length for each in shown),
            default=0,
        )
        found = self.query_one(OptionList)
        found.clear_options()
        found.add_options([ListOption(self._line(each, width), each.project) for each in shown])
        if shown:
            found.highlighted = 0
        else:
            nothing = Content.styled(self._presentation.texts("choose.nothing"), MUTED)
            found.add_option(ListOption(nothing, disabled=True))

    def _key(self, option: Option) -> str:
        project = self._presentation.projects.get(option.project)
        names = (project.name, *project.aliases) if project else ()
        return " ".join(name_key(each) for each in (*names, option.project))

    def _line(self, option: Option, width: int) -> Content:
        name = Content(self._presentation.name(option.project)).truncate(width, pad=True)
        share = f"  {option.confidence:.2f}" if option.confidence is not None else "      "
        reason = one_line(option.reason, 120)
        room = max(10, 66 - width)
        return Content.assemble(
            name, share, "  ", Content.styled(reason, MUTED).truncate(room, ellipsis=True)
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
            self.dismiss(found.get_option_at_index(found.highlighted).id)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)
