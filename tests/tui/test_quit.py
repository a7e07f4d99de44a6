"""Leaving: at once where nothing is lost, asked twice where something runs or waits."""

from __future__ import annotations

from pathlib import Path

from isola_core.model import DeliveryState
from tests.tui.stage import CONVERSATION, on_stage, opened, say
from tests.tui.states import end_delivery, stop_dispatching


async def test_one_key_quits_where_nothing_is_at_stake(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.pilot.press("ctrl+q")
        await stage.ended()
        assert stage.app.return_code == 0


async def test_a_text_in_the_entry_asks_first_and_is_kept_as_a_draft(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        async with on_stage(runtime) as stage:
            await stage.type("half a thought")
            await stage.pilot.press("ctrl+q")
            assert "kept as a draft" in stage.home.notice.text
            assert stage.app.is_running
            await stage.pilot.press("ctrl+q")
            await stage.ended()
        assert (await runtime.service.draft(CONVERSATION))[0] == "half a thought"


async def test_a_running_turn_asks_first_and_names_its_project(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop_dispatching(stage)
        view = await say(runtime, "rebuild it", "search")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        await end_delivery(stage, view, DeliveryState.RUNNING, "")
        await end_delivery(stage, view, DeliveryState.WRITTEN, "")
        await stage.pilot.press("ctrl+q")
        assert "search still at work" in stage.home.notice.text
        assert stage.app.is_running


async def test_the_first_key_is_forgotten_after_a_while(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("x")
        await stage.pilot.press("ctrl+q")
        stage.clock.advance(11)
        await stage.pilot.press("ctrl+q")
        await stage.pilot.pause()
        assert stage.app.is_running


async def test_interrupt_copies_a_selection_and_never_quits_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("abc")
        await stage.pilot.press("shift+left", "shift+left", "ctrl+c")
        assert stage.app.clipboard == "bc"
        assert stage.home.entry.message == "abc"
        await stage.pilot.press("end", "ctrl+c")
        assert stage.app.is_running
        assert "again to quit" in stage.home.notice.text
        await stage.pilot.press("ctrl+c")
        await stage.ended()


async def test_quitting_closes_what_lies_over_the_entry_first(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("x")
        await stage.pilot.press("f1", "ctrl+q")
        assert stage.app.screen is stage.home
        assert stage.app.is_running
