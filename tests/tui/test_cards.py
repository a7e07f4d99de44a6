"""Cards and agents' questions: answered by a letter, and only by the person who meant it."""

from __future__ import annotations

from pathlib import Path

import pytest

from isola_core.model import DecisionState
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.feed import FeedItem
from tests.tui.stage import Running, on_stage, opened
from tests.tui.states import ask, put_card, streaming


async def waiting(stage: Running) -> str:
    view = await put_card(stage)
    assert view.state is DecisionState.WAITING_CONFIRMATION
    return view.id


async def test_a_letter_after_the_answer_key_answers_a_card(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "b")
        await stage.until(lambda: stage.view(card).state is DecisionState.TENTATIVE)
        assert stage.view(card).project == "billing"
        await stage.until(lambda: stage.home.entry.has_focus)


async def test_a_new_card_takes_neither_keyboard_nor_text(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("ab")
        card = await waiting(stage)
        await stage.type("abn")
        assert isinstance(stage.home.focused, Entry)
        assert stage.home.entry.message == "ababn"
        assert stage.view(card).state is DecisionState.WAITING_CONFIRMATION


async def test_a_card_is_deaf_for_half_a_second(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        await stage.pilot.press("ctrl+t")
        assert stage.home.entry.has_focus
        assert "just appeared" in stage.home.notice.text
        stage.clock.advance(0.6)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.home.focused, FeedItem))
        assert stage.view(card).state is DecisionState.WAITING_CONFIRMATION


async def test_none_of_these_gives_the_text_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "n")
        await stage.until(lambda: stage.view(card).state is DecisionState.WITHDRAWN)
        assert stage.home.entry.message == stage.view(card).message.text


async def test_escape_leaves_a_card_unanswered(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "escape")
        await stage.until(lambda: stage.home.entry.has_focus)
        await stage.type("b")
        assert stage.home.entry.message == "b"
        assert stage.view(card).state is DecisionState.WAITING_CONFIRMATION


async def test_a_card_answered_elsewhere_gives_the_keyboard_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.home.focused, FeedItem))
        await runtime.service.withdraw(card)
        await stage.until(lambda: stage.home.entry.has_focus)


async def test_a_card_can_be_answered_by_a_new_project(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        card = await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "p")
        await stage.until(lambda: stage.app.screen is not stage.home)
        await stage.type("shop")
        await stage.pilot.press("ctrl+j")
        await stage.until(lambda: stage.view(card).project == "shop")


async def test_the_answer_key_walks_from_card_to_card(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        first, second = await waiting(stage), await waiting(stage)
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.focused and stage.home.focused.id == first)
        await stage.pilot.press("ctrl+t")
        await stage.until(lambda: stage.home.focused and stage.home.focused.id == second)
        await stage.pilot.press("a")
        await stage.until(lambda: stage.view(second).project == "search")
        assert stage.view(first).state is DecisionState.WAITING_CONFIRMATION


async def test_an_agents_question_is_answered_by_a_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[tuple[str, str, str]] = []

    async def answer(session: str, question: str, choice: str, text: str = "") -> None:
        answers.append((session, question, choice))
        runtime.dispatcher.live.questions.pop(session)
        runtime.dispatcher.live.changed()

    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        monkeypatch.setattr(runtime.dispatcher, "answer", answer)
        view = await streaming(stage)
        session = stage.view(view.id).session
        assert session is not None
        ask(stage, session, "search")
        await stage.until(lambda: stage.home.board.questions)
        await stage.type("b")
        assert not answers
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "b")
        await stage.until(lambda: answers)
        assert answers == [(session, "q1", "always")]
        await stage.until(lambda: not stage.home.board.questions)
        assert stage.home.entry.has_focus
        assert stage.home.entry.message == "b"
