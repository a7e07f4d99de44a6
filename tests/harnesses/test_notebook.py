"""The notebook answers with the project's own nearest notes, quoted and dated."""

from __future__ import annotations

from pathlib import Path

import pytest

from isola_core.errors import ConfigError
from isola_core.ports import Outgoing, PastTurn, SessionRef
from isola_harnesses import notebook
from isola_harnesses.conformance import Host, Subject
from isola_harnesses.notebook import is_mostly_chinese, related

MARCH = 1_772_546_700_000  # 2026-03-03 14:05 UTC


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Subject(create=lambda services: notebook.create({}, services)), tmp_path)


def note(host: Host, session: SessionRef, text: str, started: int = MARCH) -> None:
    host.history.add(session, PastTurn(f"d-{text[:8]}", text, "Noted.", started))


async def say(host: Host, session: SessionRef, text: str) -> str:
    return (await host.harness.dispatch(session, Outgoing("d-new", "m-new", text))).reply


async def test_the_nearest_notes_come_first_and_are_dated(host: Host) -> None:
    billing = host.session("billing")
    note(host, billing, "the invoice export runs at night")
    note(host, billing, "lunch on friday")
    note(host, billing, "invoice rollback keeps the audit rows")
    reply = await say(host, billing, "plan the invoice rollback")
    assert reply.splitlines() == [
        "Noted (4 notes in this project). Related:",
        "> 2026-03-03 14:05 UTC — invoice rollback keeps the audit rows",
        "> 2026-03-03 14:05 UTC — the invoice export runs at night",
    ]


async def test_notes_of_another_project_are_never_quoted(host: Host) -> None:
    note(host, host.session("search"), "invoice rollback of search")
    assert await say(host, host.session("billing"), "invoice rollback") == (
        "Noted. This is the first note of this project."
    )


async def test_words_that_say_nothing_relate_nothing(host: Host) -> None:
    billing = host.session("billing")
    note(host, billing, "what is the plan for it")
    assert await say(host, billing, "what is the cost of it?") == (
        "Noted. No related notes yet. (2 notes in this project)"
    )


async def test_a_chinese_message_is_answered_in_chinese(host: Host) -> None:
    billing = host.session("billing")
    note(host, billing, "发票迁移在夜里运行")
    reply = await say(host, billing, "请回滚发票迁移，谢谢 invoice")
    assert reply.splitlines() == [
        "已记下（本项目共 2 条）。相关笔记：",
        "> 2026-03-03 14:05 UTC — 发票迁移在夜里运行",
    ]


async def test_a_reset_gives_an_empty_page(host: Host) -> None:
    billing = host.session("billing")
    note(host, billing, "invoice rollback")
    fresh = await host.harness.reset_session(billing)
    assert await say(host, fresh, "invoice rollback") == (
        "Noted. This is the first note of this project."
    )


async def test_long_and_hostile_notes_are_quoted_short_and_on_one_line(host: Host) -> None:
    billing = host.session("billing")
    note(host, billing, "invoice\n> forged\x1b[2J\u202e " + "x" * 5000)
    heading, quote = (await say(host, billing, "invoice")).split("\n")
    assert quote.startswith("> 2026-03-03 14:05 UTC — invoice > forged[2J")
    assert len(quote) < 240
    assert heading == "Noted (2 notes in this project). Related:"


def test_at_most_three_notes_and_the_newer_one_of_equals_first() -> None:
    notes = [PastTurn(f"d-{number}", "invoice rollback", "", number) for number in range(5)]
    assert [each.delivery for each in related("invoice", notes)] == ["d-4", "d-3", "d-2"]


def test_a_setting_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="modle: there is no such setting"):
        Host(Subject(create=lambda services: notebook.create({"modle": 1}, services)), tmp_path)


@pytest.mark.parametrize(
    ("text", "chinese"),
    [("回滚 the invoice", False), ("回滚发票 invoice", True), ("請求書を直す", False), ("", False)],
)
def test_mostly_chinese_counts_characters_against_words(text: str, chinese: bool) -> None:
    assert is_mostly_chinese(text) is chinese
