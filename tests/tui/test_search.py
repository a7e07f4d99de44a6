"""Searching everything, and going to what was found."""

from __future__ import annotations

from pathlib import Path

from isola_core.model import DecisionState, Target
from isola_tui.screens.search import SearchScreen
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.test_panes import heard, long_ago


async def searched(stage: Running, words: str) -> None:
    await stage.pilot.press("ctrl+underscore")
    await stage.until(lambda: isinstance(stage.app.screen, SearchScreen))
    await stage.type(words)


async def test_a_hit_opens_its_session_at_that_message(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        pelican = await say(runtime, "the pelican is hungry", "search", conversation="shell")
        await long_ago(runtime, 120)
        await long_ago(runtime, 50, "search")
        async with on_stage(runtime) as stage:
            await searched(stage, "pelican")
            await stage.until(lambda: "1 message" in stage.screen_text)
            assert "search" in stage.screen_text
            await stage.pilot.press("enter")
            await stage.until(lambda: stage.home.viewing.target == Target("search"))
            await stage.until(lambda: "the pelican is hungry" in stage.screen_text)
            assert stage.home.viewing.selected == pelican.id


async def test_a_hit_is_shown_among_everything(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        pelican = await say(runtime, "the pelican is hungry", "search", conversation="shell")
        await long_ago(runtime, 120)
        async with on_stage(runtime) as stage:
            await searched(stage, "pelican")
            await stage.until(lambda: "1 message" in stage.screen_text)
            await stage.pilot.press("tab")
            await stage.until(lambda: stage.home.viewing.selected == pelican.id)
            await stage.until(lambda: "the pelican is hungry" in stage.screen_text)
            assert stage.home.viewing.target is None
            await stage.pilot.press("escape")
            await stage.until(lambda: "step 119 ends" in stage.screen_text)


async def test_replies_are_searched_and_arrows_choose(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await heard(stage, "the first one", "billing")
        await heard(stage, "the second one", "docs")
        await searched(stage, "first note of")
        await stage.until(lambda: "2 messages" in stage.screen_text)
        await stage.pilot.press("down", "enter")
        await stage.until(lambda: stage.home.viewing.target == Target("billing"))


async def test_what_is_in_no_message_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await heard(stage, "the first one", "billing")
        await searched(stage, "100% [/")
        await stage.until(lambda: "Nothing was found" in stage.screen_text)
        await stage.pilot.press("enter", "escape")
        await stage.until(lambda: stage.app.screen is stage.home)


async def test_a_hit_that_was_taken_back_is_found_too(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await heard(stage, "the pelican is hungry", "billing")
        await runtime.service.withdraw(stage.newest.id)
        await stage.until(lambda: stage.newest.state is DecisionState.WITHDRAWN)
        await searched(stage, "PELICAN")
        await stage.until(lambda: "1 message" in stage.screen_text)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.viewing.target == Target("billing"))
        assert "taken back" in stage.screen_text
