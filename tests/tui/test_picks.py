"""A target that was picked by hand: it belongs to the text that stood there, and to its draft."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.tui.stage import CONVERSATION, on_stage, opened


async def test_a_pick_goes_with_the_text_it_was_made_for(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("make it faster")
        await stage.pilot.press("tab")
        assert stage.home.composer.aim.chosen is not None
        await stage.pilot.press("ctrl+u")
        await stage.until(lambda: stage.home.entry.message == "")
        assert stage.home.composer.aim.chosen is None
        assert "chosen by you" not in stage.target_title


async def test_an_address_typed_after_a_pick_wins(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("make it faster")
        await stage.pilot.press("tab", "tab")
        await stage.type(" @search ")
        aim = stage.home.composer.aim
        assert aim.chosen is None
        assert aim.target is not None
        assert aim.target.project == "search"


async def test_a_pick_made_after_the_last_key_is_kept_with_the_draft(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        async with on_stage(runtime) as stage:
            await stage.type("pinned draft")

            async def saved() -> bool:
                return (await runtime.service.draft(CONVERSATION))[0] == "pinned draft"

            await stage.until_async(saved)
            await stage.pilot.press("tab")
            chosen = stage.home.composer.aim.target
            stage.app.leave(0)
            await stage.ended()
        async with on_stage(runtime) as stage:
            await stage.until(lambda: stage.home.entry.message)
            assert stage.home.composer.aim.target == chosen


async def test_typing_without_a_pause_is_saved_all_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop = asyncio.get_running_loop().time() + 4

        async def saved() -> bool:
            return bool((await runtime.service.draft(CONVERSATION))[0])

        while not await saved():
            assert asyncio.get_running_loop().time() < stop, "a draft came only after a pause"
            stage.home.composer.typed(stage.home.entry.message)
            await stage.type("k")
