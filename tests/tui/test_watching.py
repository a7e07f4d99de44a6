"""What another process does appears on the screen, and only changed parts are read."""

from __future__ import annotations

from pathlib import Path

from isola_core.model import DecisionState, Target
from isola_core.projects import NewProject, ProjectChanges
from isola_tui.board import KEPT
from isola_tui.screens.viewing import SHOWN
from tests.tui.stage import on_stage, opened, say


async def test_a_message_of_another_process_shows_up(tmp_path: Path) -> None:
    async with (
        opened(tmp_path / "home") as runtime,
        opened(tmp_path / "home") as other,
        on_stage(runtime) as stage,
    ):
        view = await say(other, "rebuild the index", "search", conversation="shell")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        assert "rebuild the index" in stage.screen_text
        await other.service.correct(view.id, Target("docs"))
        await stage.until(lambda: stage.view(view.id).state is DecisionState.CORRECTED)
        assert "corrected to docs" in stage.screen_text


async def test_a_project_of_another_process_can_be_aimed_at_once(tmp_path: Path) -> None:
    async with (
        opened(tmp_path / "home") as runtime,
        opened(tmp_path / "home") as other,
        on_stage(runtime) as stage,
    ):
        await stage.type("the pelican fails")
        await other.projects.add(NewProject("pelican"))
        await stage.until(lambda: "pelican" in stage.home.board.projects)
        await stage.until(lambda: stage.target_title.startswith("→ pelican"))
        await other.projects.edit("pelican", ProjectChanges(name="heron"))
        await stage.until(lambda: "heron" in stage.screen_text)


async def test_the_feed_keeps_the_newest_decisions_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        for number in range(KEPT + 5):
            await say(runtime, f"message {number} end", "billing", conversation="shell")
        async with on_stage(runtime) as stage:
            await stage.until(lambda: len(stage.home.board.decisions) == KEPT)
            texts = [each.message.text for each in stage.home.board.decisions.values()]
            assert texts == [f"message {number} end" for number in range(5, KEPT + 5)]
            await say(runtime, "one more", "docs", conversation="shell")
            await stage.until(lambda: stage.newest.message.text == "one more")
            assert len(stage.home.feed._items) == SHOWN


async def test_another_terminals_messages_are_not_what_a_key_means(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await say(runtime, "rebuild the index", "search", conversation="shell")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        await stage.pilot.press("f8")
        await stage.pilot.pause()
        assert stage.view(view.id).state is DecisionState.TENTATIVE
        await stage.pilot.press("f3", "f8")
        await stage.until(lambda: stage.view(view.id).state is DecisionState.WITHDRAWN)
