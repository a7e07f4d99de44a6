"""Sending: what is refused comes back, and nothing that was typed is ever lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isola_core.errors import StoreError
from isola_core.service.delegated import Accepted, Incoming
from tests.tui.stage import CONVERSATION, on_stage, opened

KEY = "sk-ant-api03-" + "Ab3" * 20
TEXT = f"the key of billing is {KEY}"


def files_with(folder: Path, text: str) -> list[Path]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    return [each for each in files if text.encode() in each.read_bytes()]


async def test_a_refused_secret_stays_in_the_entry_and_is_never_stored(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message(TEXT)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.notice.text)
        assert stage.home.entry.message == TEXT
        assert "anthropic-key" in stage.home.notice.text
        assert KEY not in stage.home.notice.text
        assert not await runtime.service.latest()

        async def masked() -> bool:
            return "[masked" in (await runtime.service.draft(CONVERSATION))[0]

        await stage.until_async(masked)
    assert not files_with(tmp_path, KEY)


async def test_the_second_key_sends_it_unstored(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message(TEXT)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.notice.text)
        await stage.pilot.press("ctrl+g")
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.message.masked
        assert KEY not in stage.newest.message.text
        assert stage.newest.project == "billing"
        assert stage.home.entry.message == ""


async def test_a_changed_text_is_not_sent_unstored(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message(TEXT)
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.notice.text)
        await stage.type("x")
        await stage.pilot.press("ctrl+g")
        await stage.pilot.pause()
        assert stage.home.entry.message == TEXT + "x"
        assert not stage.home.board.decisions


async def test_a_refused_message_comes_back_with_its_target(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("@billing")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.notice.text)
        assert stage.home.entry.message == "@billing"
        assert "no message" in stage.home.notice.text


async def test_a_failing_store_gives_the_text_back_before_what_was_typed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        typed = asyncio.Event()

        async def full(incoming: Incoming) -> Accepted:
            await typed.wait()
            raise StoreError("the disk is full: nothing was stored; free some space")

        monkeypatch.setattr(runtime.service, "accept", full)
        stage.home.entry.load_message("first of billing")
        await stage.pilot.press("enter")
        await stage.type("second")
        typed.set()
        await stage.until(lambda: stage.home.notice.text)
        assert stage.home.entry.message == "first of billing\nsecond"
        assert "disk is full" in stage.home.notice.text


async def test_a_text_on_its_way_is_part_of_the_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        accept = runtime.service.accept
        typed = asyncio.Event()

        async def slow(incoming: Incoming) -> Accepted:
            await typed.wait()
            return await accept(incoming)

        monkeypatch.setattr(runtime.service, "accept", slow)
        stage.home.entry.load_message("first of billing")
        await stage.pilot.press("enter")
        await stage.type("next")

        async def both() -> bool:
            draft, _ = await runtime.service.draft(CONVERSATION)
            return draft == "first of billing\nnext"

        await stage.until_async(both)
        typed.set()
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.home.entry.message == "next"
