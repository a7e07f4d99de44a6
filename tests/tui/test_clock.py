"""The clock moves back, jumps or stands while the machine sleeps: windows are stored deadlines."""

from __future__ import annotations

from pathlib import Path

from isola_core.model import DecisionState
from tests.tui.stage import on_stage, opened

TEXT = "roll back the billing migration"


async def test_a_clock_that_goes_back_lengthens_the_window_and_breaks_nothing(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send(TEXT)
        await stage.answered(view.id)
        deadline = stage.view(view.id).deadline
        assert deadline is not None
        stage.clock.advance(-3_600)
        await runtime.recovery.tick()
        stage.home.draw()
        await stage.until(lambda: "65:00" in stage.screen_text)
        assert stage.view(view.id).deadline == deadline
        assert stage.view(view.id).state is DecisionState.TENTATIVE
        stage.clock.advance(3_600)
        stage.home.draw()
        await stage.until(lambda: "5:00" in stage.screen_text)


async def test_after_a_sleep_a_window_is_over_once_and_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send(TEXT)
        await stage.answered(view.id)
        stage.clock.advance(86_400)
        stage.home.draw()
        await stage.pilot.pause()
        assert "-" not in stage.screen_text.partition("→ billing")[2].splitlines()[0]
        await runtime.recovery.tick()
        await stage.until(lambda: stage.view(view.id).state is DecisionState.COMMITTED)
        stage.clock.advance(-86_400)
        await runtime.recovery.tick()
        stage.home.draw()
        await stage.until(lambda: "committed" in stage.screen_text)


async def test_a_held_window_outlasts_every_jump(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send(TEXT)
        await stage.answered(view.id)
        await stage.pilot.press("f6")
        await stage.until(lambda: stage.view(view.id).held)
        for seconds in (86_400, -172_800, 86_400):
            stage.clock.advance(seconds)
            await runtime.recovery.tick()
        assert stage.view(view.id).held
        await stage.pilot.press("f6")
        await stage.until(lambda: not stage.view(view.id).held)
        await stage.until(lambda: "5:00" in stage.screen_text)
