"""What can be done with a message: correct, take back, undo, hold, commit, explain, settle."""

from __future__ import annotations

import re
from pathlib import Path

from isola_core.model import DecisionState, DeliveryState, RewindState
from isola_tui.widgets.entry import Entry
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.states import end_delivery, stop_dispatching, to_unknown

TEXT = "roll back the billing migration"


async def sent(stage: Running, text: str = TEXT) -> str:
    view = await stage.send(text)
    await stage.answered(view.id)
    return view.id


async def test_a_correction_moves_the_last_message_and_says_what_was_undone(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        old = await sent(stage)
        await stage.pilot.press("ctrl+r")
        await stage.type("sea")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.view(old).state is DecisionState.CORRECTED)
        await stage.until(lambda: stage.newest.previous == old)
        assert stage.newest.project == "search"
        await stage.until(lambda: "billing → search" in stage.home.notice.text)
        assert re.search("forgets it|has forgotten it", stage.home.notice.text)
        assert "Not undone" in stage.home.notice.text
        await stage.until(lambda: stage.view(old).rewind is RewindState.DONE)
        assert "has forgotten it" in stage.screen_text


async def test_escape_in_the_list_corrects_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        old = await sent(stage)
        await stage.pilot.press("ctrl+r", "escape")
        await stage.until(lambda: stage.app.screen is stage.home)
        assert stage.view(old).state is DecisionState.TENTATIVE


async def test_a_selected_message_is_corrected_instead_of_the_last(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        first = await sent(stage)
        second = await sent(stage, "the billing run again")
        await stage.pilot.press("f3", "f3", "ctrl+r", "enter")
        await stage.until(lambda: stage.view(first).state is DecisionState.CORRECTED)
        assert stage.view(second).state is DecisionState.TENTATIVE


async def test_undo_takes_a_correction_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        old = await sent(stage)
        await stage.pilot.press("ctrl+r")
        await stage.type("docs")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.newest.project == "docs")
        corrected = stage.newest.id
        await stage.pilot.press("f7")
        await stage.until(lambda: stage.newest.previous == corrected)
        assert stage.newest.project == "billing"
        assert stage.view(old).state is DecisionState.CORRECTED


async def test_taking_back_returns_the_text_to_the_entry(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.type("next thought")
        await stage.pilot.press("f8")
        await stage.until(lambda: stage.view(view).state is DecisionState.WITHDRAWN)
        await stage.until(lambda: stage.home.entry.message == f"{TEXT}\nnext thought")
        assert "Taken back from billing" in stage.home.notice.text


async def test_a_window_is_held_and_released(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.pilot.press("f6")
        await stage.until(lambda: stage.view(view).held)
        assert "held open" in stage.screen_text
        stage.clock.advance(10)
        await stage.pilot.press("f6")
        await stage.until(lambda: not stage.view(view).held)
        deadline = stage.view(view).deadline
        assert deadline is not None
        assert deadline - stage.clock.now() == 300_000


async def test_commit_now_ends_the_window(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.pilot.press("f5")
        await stage.until(lambda: stage.view(view).state is DecisionState.COMMITTED)
        await stage.until(lambda: "committed" in stage.screen_text)


async def test_the_time_left_is_a_view_of_the_stored_deadline(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await sent(stage)
        assert "5:00" in stage.screen_text
        stage.clock.advance(200)
        stage.home.draw()
        await stage.pilot.pause()
        assert "1:40" in stage.screen_text
        stage.clock.advance(-3600)
        stage.home.draw()
        await stage.pilot.pause()
        assert "61:40" in stage.screen_text


async def test_an_unknown_delivery_offers_its_two_choices(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop_dispatching(stage)
        view = await say(runtime, TEXT, "billing")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        await to_unknown(stage, view)
        assert "may or may not have arrived" in stage.screen_text
        await stage.pilot.press("f12")
        await stage.until(lambda: stage.view(view.id).delivery is DeliveryState.ANSWERED)


async def test_an_unknown_delivery_is_sent_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop_dispatching(stage)
        view = await say(runtime, TEXT, "billing")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        await to_unknown(stage, view)
        await stage.pilot.press("ctrl+y")
        await stage.until(lambda: stage.view(view.id).attempt == 2)
        assert stage.view(view.id).delivery is DeliveryState.PENDING


async def test_a_refused_act_says_why_and_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.pilot.press("ctrl+y")
        await stage.until(lambda: "nothing to resend" in stage.home.notice.text)
        assert stage.view(view).attempt == 1


async def test_a_waiting_delivery_is_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stop_dispatching(stage)
        view = await say(runtime, TEXT, "billing")
        await stage.until(lambda: view.id in stage.home.board.decisions)
        await end_delivery(stage, view, DeliveryState.RUNNING, "")
        await stage.pilot.press("f9")
        await stage.until(lambda: stage.view(view.id).delivery is DeliveryState.CANCELLED)


async def test_why_shows_the_stored_explanation(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.pilot.press("f2")
        await stage.until(lambda: view in stage.screen_text)
        told = stage.view(view).attribution
        assert f"{told.confidence:.2f}" in stage.screen_text
        assert "ANSWERED" in stage.screen_text
        await stage.pilot.press("escape")
        await stage.until(lambda: stage.app.screen is stage.home)


async def test_the_menu_does_an_act_by_its_letter(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await sent(stage)
        await stage.pilot.press("ctrl+o", "h")
        await stage.until(lambda: stage.view(view).held)


async def test_a_long_message_is_folded_and_opens(tmp_path: Path) -> None:
    text = "billing\n" + "\n".join(f"step {n}" for n in range(30))
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await sent(stage, text)
        assert "step 29" not in stage.screen_text
        assert "more lines" in stage.screen_text
        await stage.pilot.press("ctrl+f")
        await stage.until(lambda: "step 29" in stage.screen_text)


async def test_keys_without_any_message_say_so(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        for key in ("ctrl+r", "f2", "f5", "f6", "f7", "f8", "f9", "f12", "ctrl+y", "ctrl+o"):
            stage.home.notice.clear()
            await stage.pilot.press(key)
            assert "no message" in stage.home.notice.text, key


async def test_a_text_that_is_gone_is_asked_for_before_it_is_moved(tmp_path: Path) -> None:
    text = "the billing key is sk-ant-api03-" + "Ab3" * 20
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message(text)
        await stage.pilot.pause()
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.notice.text)
        await stage.pilot.press("ctrl+g")
        await stage.until(lambda: stage.home.board.decisions)
        view = await stage.answered(stage.newest.id)
        runtime.core.vault.texts.clear()  # as after the program was started again
        await stage.pilot.press("ctrl+r", *"sea", "enter")
        await stage.until(lambda: "give it again" in stage.screen_text)
        stage.app.screen.query_one(Entry).load_message(text)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.newest.previous == view.id)
        assert stage.newest.project == "search"
        assert "sk-ant" not in stage.newest.message.text or "masked" in stage.newest.message.text
