"""Several messages at once, the next thing that needs somebody, and the feed's older pages."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from isola_core.model import DecisionState, DeliveryState, Target
from isola_tui.board import KEPT
from isola_tui.runtime import Runtime
from isola_tui.screens.viewing import MOST, SHOWN
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.states import end_delivery, put_card, stop_dispatching, to_unknown
from tests.tui.test_panes import heard, long_ago

MARK = "ctrl+circumflex_accent"


async def two_marked(stage: Running) -> tuple[str, str]:
    """Two answered messages of two projects, both marked."""
    await heard(stage, "the run stops", "billing")
    first = stage.newest.id
    await heard(stage, "write a page", "docs")
    second = stage.newest.id
    await stage.pilot.press("f3", MARK, "f3", MARK)
    await stage.until(lambda: "2 messages marked" in stage.home.notice.text)
    return first, second


async def test_marked_messages_are_corrected_together(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        first, second = await two_marked(stage)
        await stage.pilot.press("ctrl+r", *"search", "enter")
        await stage.until(lambda: stage.view(first).state is DecisionState.CORRECTED)
        await stage.until(lambda: stage.view(second).state is DecisionState.CORRECTED)
        await stage.until(lambda: "2 messages → search" in stage.home.notice.text)
        assert "Not undone" in stage.home.notice.text
        await stage.until(lambda: "billing's session has forgotten it" in stage.home.notice.text)
        assert "docs's session has forgotten it" in stage.home.notice.text
        assert not stage.home.viewing.marked


async def test_a_correction_of_several_is_undone_as_one(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await two_marked(stage)
        await stage.pilot.press("ctrl+r", *"search", "enter")
        await stage.until(lambda: "2 messages → search" in stage.home.notice.text)
        await stage.pilot.press("escape", "f7")

        def active() -> list[str | None]:
            views = stage.home.board.decisions.values()
            return [each.project for each in views if each.state is DecisionState.TENTATIVE]

        await stage.until(lambda: sorted(map(str, active())) == ["billing", "docs"])


async def test_what_is_there_already_is_left_and_said(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        first, second = await two_marked(stage)
        await stage.pilot.press("ctrl+r", *"docs", "enter")
        await stage.until(lambda: stage.view(first).state is DecisionState.CORRECTED)
        await stage.until(lambda: "1 was there already" in stage.home.notice.text)
        assert stage.view(second).state is DecisionState.TENTATIVE


async def test_one_that_cannot_be_moved_keeps_no_other_from_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        first, second = await two_marked(stage)
        moving = [stage.view(first).id, "d-gone", stage.view(second).id]
        done = await stage.home.acts.correct_all(moving, Target("search"))
        assert "2 messages → search" in done.said
        assert "1 stays where it is" in done.said


async def test_escape_clears_the_marks_first(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await two_marked(stage)
        await stage.pilot.press("escape")
        assert not stage.home.viewing.marked
        assert stage.home.viewing.selected is not None


async def test_failed_and_unknown_deliveries_need_somebody_too(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop_dispatching(stage)
        card = await put_card(stage)
        failed = await say(runtime, "ship the handbook", "docs")
        unknown = await say(runtime, "rebuild the index", "search")
        await stage.until(lambda: unknown.id in stage.home.board.decisions)
        await end_delivery(stage, failed, DeliveryState.FAILED, "it refuses")
        await to_unknown(stage, unknown)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.focused is stage.home.feed.item(card.id))
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.viewing.selected == failed.id)
        assert "not delivered to docs" in stage.home.notice.text
        assert stage.home.focused is stage.home.entry
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.viewing.selected == unknown.id)
        await stage.pilot.press("f12")
        await stage.until(lambda: stage.view(unknown.id).delivery is DeliveryState.ANSWERED)


async def test_an_old_card_is_found_however_much_came_after_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        card = await say(runtime, "make it so", conversation="shell")
        await long_ago(runtime, KEPT + 10)
        async with on_stage(runtime) as stage:
            assert card.id not in stage.home.board.decisions
            await stage.pilot.press("ctrl+t")
            await stage.until(lambda: stage.home.feed.item(card.id))
            stage.clock.advance(1)
            await stage.pilot.press("ctrl+t")
            await stage.until(lambda: stage.home.focused is stage.home.feed.item(card.id))
            await stage.pilot.press("a")
            await stage.until(lambda: not stage.home.board.cards())


async def test_the_feed_pages_back_to_the_first_message_and_stays_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        await long_ago(runtime, MOST + 60)
        async with on_stage(runtime) as stage:
            feed = stage.home.feed
            await stage.until(lambda: len(feed._items) == SHOWN)
            for _ in range(300):
                if "step 0 ends" in stage.screen_text:
                    break
                await stage.pilot.press("pageup")
            await stage.until(lambda: "step 0 ends" in stage.screen_text)
            assert len(feed._items) <= MOST
            await say(runtime, "a new one meanwhile", "docs", conversation="shell")
            await stage.until(lambda: stage.newest.message.text == "a new one meanwhile")
            assert "step 0 ends" in stage.screen_text
            await stage.pilot.press("escape")
            await stage.until(lambda: "a new one meanwhile" in stage.screen_text)
            await stage.until(lambda: len(feed._items) <= MOST)


async def test_another_process_is_seen_within_half_a_second(tmp_path: Path) -> None:
    async with (
        opened(tmp_path / "home") as runtime,
        opened(tmp_path / "home") as other,
        on_stage(runtime) as stage,
    ):
        seconds = [await seconds_to_show(stage, other, f"change {n}") for n in range(5)]
        assert statistics.median(seconds) < 0.5


async def seconds_to_show(stage: Running, other: Runtime, text: str) -> float:
    """How long the screen takes to show what another process has stored."""
    await say(other, text, "search", conversation="shell")
    began = time.monotonic()
    await stage.until(lambda: text in stage.screen_text)
    return time.monotonic() - began
