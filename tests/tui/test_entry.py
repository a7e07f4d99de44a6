"""The entry: the target above the text, hand-picked targets, drafts, history, long pastes."""

from __future__ import annotations

from pathlib import Path

from textual import events

from isola_core.model import DecisionState, Stage
from tests.tui.stage import CONVERSATION, PROJECTS, Running, on_stage, opened

TEXT = "roll back the billing migration"


async def type_text(stage: Running, text: str) -> None:
    stage.home.entry.load_message(text)
    await stage.pilot.pause()


async def test_the_target_stands_above_the_text_while_typing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("the billing run")
        assert stage.target_title.startswith("→ billing 0.")
        assert "(" in stage.target_title


async def test_an_unsure_preview_says_that_a_card_will_ask(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await type_text(stage, "make it faster")
        assert "a card will ask" in stage.target_title


async def test_several_addressed_projects_get_a_message_each(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await type_text(stage, "@billing @search look at the totals")
        assert stage.target_title.startswith("→ billing + search")
        await stage.pilot.press("enter")
        await stage.until(lambda: len(stage.home.board.decisions) == 2)
        sent = {(each.project, each.message.text) for each in stage.home.board.decisions.values()}
        assert sent == {("billing", "look at the totals"), ("search", "look at the totals")}


async def test_enter_sends_to_the_target_that_was_shown(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        view = await stage.send(TEXT)
        assert view.project == "billing"
        assert view.state is DecisionState.TENTATIVE
        assert view.message.text == TEXT
        assert stage.home.entry.message == ""


async def test_a_target_chosen_by_hand_survives_further_typing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("the billing")
        await stage.pilot.press("tab")
        chosen = stage.home.composer.aim.target
        assert chosen is not None
        assert chosen.project != "billing"
        await stage.type(" run")
        assert stage.home.composer.aim.target == chosen
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.project == chosen.project
        assert stage.newest.attribution.stage is Stage.CHOSEN


async def test_escape_lets_attribution_choose_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await type_text(stage, TEXT)
        await stage.pilot.press("shift+tab")
        assert "chosen by you" in stage.target_title
        await stage.pilot.press("escape")
        assert stage.target_title.startswith("→ billing")


async def test_the_target_key_walks_through_every_project(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await type_text(stage, TEXT)
        seen = set()
        for _ in PROJECTS:
            await stage.pilot.press("tab")
            target = stage.home.composer.aim.target
            assert target is not None
            seen.add(target.project)
        assert seen == {each.id for each in PROJECTS}


async def test_a_new_line_does_not_send(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("one")
        await stage.pilot.press("ctrl+j")
        await stage.type("two")
        assert stage.home.entry.message == "one\ntwo"
        assert not stage.home.board.decisions


async def test_a_blank_text_is_not_sent(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("   ")
        await stage.pilot.press("enter")
        await stage.pilot.pause()
        assert stage.home.entry.message == "   "
        assert not await runtime.service.latest()


async def test_every_printable_key_alone_is_text(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        letters = "abcnop?123 yq"
        await stage.type(letters.replace("?", ""))
        assert stage.home.entry.message == letters.replace("?", "")
        assert stage.app.screen is stage.home


async def test_sent_messages_come_back_at_the_upper_edge(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.send("billing one")
        await stage.send("billing two")
        await stage.type("new")
        await stage.pilot.press("up")
        assert stage.home.entry.message == "billing two"
        await stage.pilot.press("up")
        assert stage.home.entry.message == "billing one"
        await stage.pilot.press("down", "down")
        assert stage.home.entry.message == "new"


async def test_a_draft_survives_the_end_of_the_program(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime:
        async with on_stage(runtime) as stage:
            await type_text(stage, "half a thought")
            await stage.pilot.press("tab")
            chosen = stage.home.composer.aim.target
            assert chosen is not None
            await stage.type("!")

            async def saved() -> bool:
                return (await runtime.service.draft(CONVERSATION))[0] == "half a thought!"

            await stage.until_async(saved)
        async with on_stage(runtime) as stage:
            await stage.until(lambda: stage.home.entry.message)
            assert stage.home.entry.message == "half a thought!"
            assert stage.home.composer.aim.target == chosen


async def test_a_sent_message_leaves_no_draft(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.send(TEXT)

        async def gone() -> bool:
            return await runtime.service.draft(CONVERSATION) == ("", None)

        await stage.until_async(gone)


async def test_a_pasted_megabyte_becomes_one_mark_and_is_sent_whole(tmp_path: Path) -> None:
    lines = "\n".join(f"line {n} of the billing log, with some words in it" for n in range(20_000))
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.post_message(events.Paste(lines))
        await stage.until(lambda: stage.home.entry.text)
        assert len(stage.home.entry.text) < 60
        assert stage.home.entry.message == lines
        await stage.until(lambda: not stage.home.composer.aim.partial)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.message.text == lines


async def test_pasted_control_characters_do_not_reach_the_entry(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.post_message(events.Paste("a\x1b]52;c;ZXZpbA==\x07b\r\nc\x9bd"))
        await stage.until(lambda: stage.home.entry.text)
        assert stage.home.entry.message == "a]52;c;ZXZpbA==b\ncd"
