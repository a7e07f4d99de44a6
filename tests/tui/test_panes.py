"""Panes: one session's conversation, one key away; what waits for it; what is unread."""

from __future__ import annotations

from pathlib import Path

import pytest

from isola_core.model import DecisionState, DeliveryState, Target
from isola_core.ports import TurnEvent, TurnEventKind
from isola_core.store.transaction import Transaction
from isola_tui.runtime import Runtime
from isola_tui.screens.edit_waiting import EditWaiting
from isola_tui.screens.viewing import PANE_MOST, PANE_PAGE
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.pane import Pane, Reply, Turn
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.states import end_delivery, stop_dispatching


async def open_pane(stage: Running, key: str = "alt+1", project: str = "billing") -> None:
    await stage.pilot.press(key)
    await stage.until(lambda: stage.home.viewing.target == Target(project))


async def running_turn(stage: Running, project: str = "billing") -> str:
    """A turn that does not end by itself."""
    stop_dispatching(stage)
    view = await say(stage.runtime, "long work", project)
    await stage.until(lambda: view.id in stage.home.board.decisions)
    await end_delivery(stage, view, DeliveryState.RUNNING, "")
    await end_delivery(stage, view, DeliveryState.WRITTEN, "")
    return view.id


async def heard(stage: Running, text: str, project: str) -> None:
    """A message of another process, answered."""
    view = await say(stage.runtime, text, project)
    await stage.until(lambda: view.id in stage.home.board.decisions)
    await stage.answered(view.id)


def drawn_pane(stage: Running) -> str:
    """What stands in the pane, row by row."""
    region = stage.home.query_one(Pane).region
    rows = stage.screen_text.split("\n")[region.y : region.bottom]
    return "\n".join(row[region.x : region.right] for row in rows)


async def test_a_project_key_opens_its_pane_and_escape_leaves_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        mine = await stage.send("the billing run stops")
        await stage.answered(mine.id)
        await heard(stage, "rebuild the index", "search")
        await open_pane(stage)
        await stage.until(lambda: "the billing run stops" in drawn_pane(stage))
        assert "rebuild the index" not in drawn_pane(stage)
        assert "billing" in drawn_pane(stage).splitlines()[0]
        assert "notebook" in drawn_pane(stage).splitlines()[0]
        await stage.pilot.press("escape")
        await stage.until(lambda: stage.home.viewing.target is None)
        await stage.until(lambda: "rebuild the index" in stage.screen_text)


async def test_one_key_goes_to_the_selected_messages_session_and_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        for project in ("billing", "search"):
            await heard(stage, f"a note for {project}", project)
        await stage.pilot.press("f3", "f3", "ctrl+right_square_bracket")
        await stage.until(lambda: stage.home.viewing.target == Target("billing"))
        await stage.pilot.press("ctrl+right_square_bracket")
        await stage.until(lambda: stage.home.viewing.target is None)


async def test_a_pane_can_be_chosen_by_number_or_name(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.pilot.press("ctrl+backslash", "3")
        await stage.until(lambda: stage.home.viewing.target == Target("search"))
        await stage.pilot.press("ctrl+backslash", "d", "o", "c", "enter")
        await stage.until(lambda: stage.home.viewing.target == Target("docs"))
        await stage.pilot.press("ctrl+backslash", "0")
        await stage.until(lambda: stage.home.viewing.target is None)


async def test_a_lane_has_a_pane_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.answered((await stage.send("@billing/review look at the dunning run")).id)
        await stage.answered((await stage.send("@billing start the run")).id)
        await stage.pilot.press("ctrl+backslash", *"review", "enter")
        await stage.until(lambda: stage.home.viewing.target == Target("billing", "review"))
        await stage.until(lambda: "look at the dunning run" in drawn_pane(stage))
        assert "start the run" not in drawn_pane(stage)


@pytest.mark.parametrize(
    ("size", "panel", "offset"),
    [((120, 40), "#projects", (6, 1)), ((80, 24), "#projects-line", (4, 0))],
)
async def test_a_click_on_a_project_opens_its_pane(
    tmp_path: Path, size: tuple[int, int], panel: str, offset: tuple[int, int]
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime, size=size) as stage:
        await stage.pilot.click(panel, offset=offset)
        await stage.until(lambda: stage.home.viewing.target == Target("billing"))


async def test_replies_are_rendered(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        decision = await running_turn(stage)
        await open_pane(stage)
        live = runtime.dispatcher.live
        for part in ("# Found\n\nIt is **sl", "ow** because\n\n", "- one\n- two\n"):
            live.hear(decision, TurnEvent(TurnEventKind.TEXT, part))
            await stage.pilot.pause(0.1)
        await stage.until(lambda: "two" in drawn_pane(stage))
        assert "It is slow because" in drawn_pane(stage)
        assert "• one" in drawn_pane(stage)
        assert "**" not in drawn_pane(stage)


async def test_an_excised_turn_is_struck_through_and_says_where_it_went(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send("the billing run stops")
        await stage.answered(view.id)
        await runtime.service.correct(view.id, Target("search"))
        await stage.until(lambda: stage.view(view.id).state is DecisionState.CORRECTED)
        await open_pane(stage)
        await stage.until(lambda: "corrected to search" in drawn_pane(stage))
        await stage.until(lambda: "has forgotten it" in drawn_pane(stage))
        turn = stage.home.query_one(Turn)
        strips = [turn.message.render_line(y) for y in range(turn.message.size.height)]
        struck = [each for strip in strips for each in strip if each.style and each.style.strike]
        assert "the billing run stops" in "".join(each.text for each in struck)


async def test_a_long_session_is_read_by_pages_and_stays_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        await long_ago(runtime, PANE_MOST * 2)
        async with on_stage(runtime) as stage:
            await open_pane(stage)
            turns = stage.home.viewing.feed
            await stage.until(lambda: PANE_PAGE <= len(turns._items) <= PANE_MOST)
            for _ in range(200):
                if "step 0 ends" in drawn_pane(stage):
                    break
                await stage.pilot.press("pageup")
                await stage.pilot.pause(0.02)
            assert "step 0 ends" in drawn_pane(stage)
            assert len(turns._items) <= PANE_MOST
            assert "newer ones below" in drawn_pane(stage)
            for _ in range(200):
                if f"step {PANE_MOST * 2 - 1} ends" in drawn_pane(stage):
                    break
                await stage.pilot.press("pagedown")
                await stage.pilot.pause(0.02)
            assert f"step {PANE_MOST * 2 - 1} ends" in drawn_pane(stage)
            assert len(turns._items) <= PANE_MOST


async def long_ago(runtime: Runtime, count: int, project: str = "billing") -> None:
    """So many messages that were answered and committed."""
    for number in range(count):
        await say(runtime, f"step {number} ends", project, conversation="shell")

    def work(tx: Transaction) -> None:
        tx.run("UPDATE deliveries SET state = 'ANSWERED'")
        tx.run("UPDATE decisions SET state = 'COMMITTED' WHERE project IS NOT NULL")

    await runtime.store.write(work)


async def test_waiting_messages_are_shown_changed_and_taken_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await running_turn(stage)
        first = await say(runtime, "then the invoices", "billing")
        second = await say(runtime, "then the reminders", "billing")
        await open_pane(stage)
        await stage.until(lambda: "2 messages wait" in drawn_pane(stage))
        assert "2 wait" in stage.screen_text
        await stage.pilot.press("f3", "alt+e")
        await stage.until(lambda: isinstance(stage.app.screen, EditWaiting))
        assert stage.app.screen.query_one(Entry).message == "then the reminders"
        await stage.type(" today")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.view(second.id).message.text == "then the reminders today")
        await stage.pilot.press("f3", "f8")
        await stage.until(lambda: stage.view(first.id).state is DecisionState.WITHDRAWN)
        await stage.until(lambda: stage.home.entry.message == "then the invoices")
        await stage.until(lambda: "1 message waits" in drawn_pane(stage))


async def test_a_message_on_its_way_cannot_be_changed(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await running_turn(stage)
        await stage.pilot.press("alt+e")
        await stage.until(lambda: "on its way" in stage.home.notice.text)
        assert stage.app.screen is stage.home


async def test_an_answer_that_nobody_saw_is_marked_until_it_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await open_pane(stage)
        await heard(stage, "rebuild the index", "search")
        await stage.until(lambda: stage.home.board.unread_counts() == {"search": 1})
        assert "search •1" in stage.screen_text
        await open_pane(stage, "alt+3", "search")
        await stage.until(lambda: not stage.home.board.unread_counts())
        assert "•1" not in stage.screen_text


async def test_what_arrives_in_view_is_read(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await heard(stage, "rebuild the index", "search")
        await open_pane(stage)
        await heard(stage, "the run stops", "billing")
        assert not stage.home.board.unread_counts()


async def test_a_confirmation_while_another_pane_is_open_becomes_a_card(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.answered((await stage.send("@search rebuild the index")).id)
        await stage.type("yes")
        await stage.until(lambda: stage.target_title.startswith("→ search"))
        await open_pane(stage)
        await stage.until(lambda: stage.target_title.startswith("→ ?"))
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.board.cards())
        await stage.until(lambda: "1 card waits" in drawn_pane(stage))
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.viewing.target is None)
        await stage.until(lambda: "just appeared" in stage.home.notice.text)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.focused is not stage.home.entry)
        await stage.pilot.press("a")
        await stage.until(lambda: not stage.home.board.cards())


async def test_a_link_of_a_reply_is_copied_and_never_opened(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        decision = await running_turn(stage)
        await open_pane(stage)
        text = "see [here](https://example.org/a)"
        runtime.dispatcher.live.hear(decision, TurnEvent(TurnEventKind.TEXT, text))
        await stage.until(lambda: "see here" in drawn_pane(stage))
        reply = stage.home.query_one(Reply)
        await stage.pilot.click(reply, offset=(8, 0))
        await stage.until(lambda: stage.app.clipboard == "https://example.org/a")
