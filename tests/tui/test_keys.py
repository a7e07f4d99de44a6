"""Keys: every binding can be named and remapped, and every act has a key that survives."""

from __future__ import annotations

import inspect
from pathlib import Path

from textual.binding import Binding

from isola_tui.app import IsolaApp
from isola_tui.screens.choose import ChooseProject
from isola_tui.screens.edit_waiting import EditWaiting
from isola_tui.screens.go_to import GoTo
from isola_tui.screens.help import SHOWN
from isola_tui.screens.home import HomeScreen
from isola_tui.screens.menu import MessageMenu
from isola_tui.screens.project_form import ProjectForm
from isola_tui.screens.reading import ReadingScreen
from isola_tui.screens.search import SearchScreen
from isola_tui.widgets.entry import Entry
from tests.tui.stage import on_stage, opened

OWNERS = (
    *(IsolaApp, HomeScreen, Entry, ChooseProject, EditWaiting, GoTo, MessageMenu, ProjectForm),
    *(ReadingScreen, SearchScreen),
)

SWALLOWED = {
    *("ctrl+a", "ctrl+b", "ctrl+s", "ctrl+z", "ctrl+up", "ctrl+down", "ctrl+left", "ctrl+right"),
    *("alt+enter", "shift+enter", "ctrl+backspace", "alt+backspace"),
}
"""Taken by screen, tmux, flow control, job control, a Mac's desktop, or not sent at all."""


def bindings() -> list[Binding]:
    return [each for owner in OWNERS for each in Binding.make_bindings(owner.BINDINGS)]


def test_every_binding_has_an_id() -> None:
    assert all(each.id for each in bindings())


def test_every_act_has_a_key_that_survives() -> None:
    keys: dict[str, set[str]] = {}
    for each in bindings():
        assert each.id
        keys.setdefault(each.id, set()).add(each.key)
    for name in (*SHOWN, "send", "newline"):
        if not name.startswith("entry_"):
            assert keys[name] - SWALLOWED, name


def test_no_key_means_two_things_on_the_home_screen() -> None:
    seen: dict[str, str] = {}
    for owner in (IsolaApp, HomeScreen, Entry):
        for each in Binding.make_bindings(owner.BINDINGS):
            assert each.id
            assert seen.setdefault(each.key, each.id) == each.id, each.key


async def test_the_palette_offers_every_act(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        titles = {each.title for each in stage.app.get_system_commands(stage.app.screen)}
        texts = stage.app.texts
        for name in ("answer", "correct", "withdraw", "undo", "hold", "why", "new_project", "quit"):
            assert texts(f"action.{name}") in titles


async def test_a_palette_entry_does_its_act(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send("the billing run")
        await stage.answered(view.id)
        title = stage.app.texts("action.hold")
        commands = stage.app.get_system_commands(stage.app.screen)
        done = next(each for each in commands if each.title == title).callback()
        if inspect.isawaitable(done):
            await done
        await stage.until(lambda: stage.view(view.id).held)


async def test_help_lists_the_keys_as_they_are_bound(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime, size=(100, 60)) as stage:
        await stage.pilot.press("f1")
        await stage.pilot.pause()
        for name in SHOWN:
            assert stage.app.texts(f"action.{name}")[:30] in stage.screen_text, name
        await stage.pilot.press("escape")
        assert stage.app.screen is stage.home
