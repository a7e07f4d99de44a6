"""Names behind an `@`: offered while typing, taken by Tab, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from isola_core.model import Project
from isola_tui.completion import Completion
from tests.tui.stage import on_stage, opened

PROJECTS = (
    Project("billing", "billing", "s", aliases=("计费", "invoices")),
    Project("search", "search", "s"),
    Project("app", "My App", "s"),
    Project("cpp", "C++ (core)", "s"),
)
COMPLETION = Completion(PROJECTS, {"search": ("tests", "docs")})


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("@", ["billing", "search", "My-App", "cpp"]),
        ("fix @sea", ["search"]),
        ("@SEA", ["search"]),
        ("@ilg", ["billing"]),
        ("请看@计", ["计费"]),
        ("@inv", ["invoices"]),
        ("@my-a", ["My-App"]),
        ("@search/", ["search/tests", "search/docs"]),
        ("@search/t", ["search/tests"]),
        ("one\n@se", ["search"]),
        ("@search", []),
        ("@search ", []),
        ("@nothing", []),
        ("me@sea", []),
        ("\\@sea", []),
        ("@@sea", []),
        ("`@sea", []),
        ("```\n@sea", []),
        ("@/", []),
    ],
)
def test_what_is_offered(before: str, offered: list[str]) -> None:
    assert [each.written for each in COMPLETION.offers(before)] == offered


async def test_tab_takes_the_best_name(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("fix @sea")
        await stage.until(lambda: "@search" in stage.screen_text)
        await stage.pilot.press("tab")
        assert stage.home.entry.message == "fix @search "
        await stage.until(lambda: stage.target_title.startswith("→ search"))
        assert not stage.home.query_one("#offers").display
        assert stage.home.composer.aim.chosen is None


async def test_enter_sends_unless_the_person_picked_an_offer(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("@billing do it and tell @sea")
        await stage.until(lambda: stage.home.entry.offers)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.project == "billing"


async def test_enter_takes_the_offer_that_was_picked(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("@")
        await stage.pilot.press("down", "down", "enter")
        assert stage.home.entry.message == "@docs "
        assert not stage.home.board.decisions


async def test_escape_closes_the_list_and_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.pilot.press("ctrl+l")
        await stage.type("@b")
        await stage.until(lambda: stage.home.query_one("#offers").display)
        await stage.pilot.press("escape")
        assert not stage.home.entry.offers
        assert stage.home.entry.message == "@b"
        await stage.type("i")
        assert not stage.home.entry.offers
        await stage.type(" @b")
        assert stage.home.entry.offers


async def test_names_are_taken_in_the_middle_and_in_one_burst(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message("tell  about it")
        stage.home.entry.move_cursor((0, 5))
        for key, letter in (("at", "@"), ("d", "d"), ("o", "o"), ("tab", None)):
            stage.app.post_message(events.Key(key, letter))
        await stage.until(lambda: stage.home.entry.message == "tell @docs about it")
