"""All bindings of the program, by the screen on which they can be meant at the same time.

The configuration's keys are checked against this list, and `docs/keys.md` is written from it.
"""

from __future__ import annotations

from typing import Final

from textual.binding import Binding, BindingType

from isola_core.config import Config
from isola_tui.app import IsolaApp
from isola_tui.keymap import problems_of
from isola_tui.screens.choose import ChooseProject
from isola_tui.screens.edit_waiting import EditWaiting
from isola_tui.screens.go_to import GoTo
from isola_tui.screens.home import HomeScreen
from isola_tui.screens.menu import MessageMenu
from isola_tui.screens.project_form import ProjectForm
from isola_tui.screens.reading import ReadingScreen
from isola_tui.screens.search import SearchScreen
from isola_tui.screens.send_as import SendAs
from isola_tui.themes import theme_problem
from isola_tui.widgets.entry import Entry

HOME: Final[tuple[BindingType, ...]] = (
    *IsolaApp.BINDINGS,
    *HomeScreen.BINDINGS,
    *Entry.BINDINGS,
)
DIALOGS: Final = (
    *(ChooseProject, MessageMenu, SendAs, GoTo, SearchScreen, EditWaiting),
    *(ProjectForm, ReadingScreen),
)

EVERYWHERE: Final = tuple(
    each for each in Binding.make_bindings(IsolaApp.BINDINGS) if each.priority
)
"""The app's keys that work above a dialog too."""

SCREENS: Final[tuple[tuple[BindingType, ...], ...]] = (
    HOME,
    *((*EVERYWHERE, *each.BINDINGS) for each in DIALOGS),
)


def screen_problems(config: Config) -> list[str]:
    """What is wrong with the part of the configuration that only the screen can judge."""
    problems = problems_of(config.keys, SCREENS)
    if said := theme_problem(config.theme):
        problems.append(said)
    return problems
