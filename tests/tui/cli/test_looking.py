"""`isola decisions`, `explain`, `recall`, `tick`, `session reset`: looking and housekeeping."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from isola_core.clock import SystemClock
from isola_core.processes import SystemProcesses
from isola_core.store import sessions
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction
from tests.fake_model.server import FakeModel
from tests.tui.cli.conftest import Isola


@pytest.fixture
def committed(home: Path, isola: Isola, projects: None) -> str:
    """A decision of billing that is final and remembered."""
    (home / "config.yaml").write_text("isolation_s: 0\n")
    text = "@billing we decided to round every invoice to whole cents"
    decision: str = isola("chat", "--text", text, "--json").json["decision_id"]
    assert isola("tick", "--json").code == 0
    return decision


def test_decisions_are_listed_newest_last_and_filtered(isola: Isola, projects: None) -> None:
    isola("chat", "--text", "@billing one", "--conversation", "x")
    isola("chat", "--text", "@search 二号 [/red]", "--conversation", "y")
    isola("chat", "--text", "the roof of the greenhouse leaks", "--conversation", "z")
    listed = isola("decisions").out.splitlines()
    assert listed[0].split()[:2] == ["DECISION", "CREATED"]
    assert "one" in listed[1]
    assert "二号 [/red]" in listed[2]
    assert "your choice" in listed[3]

    def texts(*options: str) -> list[str]:
        found = isola("decisions", "--json", *options).json["decisions"]
        return [each["text"] for each in found]

    assert texts("--limit", "1") == ["the roof of the greenhouse leaks"]
    assert texts("--project", "SEARCH") == ["二号 [/red]"]
    assert texts("--conversation", "x") == ["one"]
    assert texts("--state", "waiting_confirmation") == ["the roof of the greenhouse leaks"]
    assert texts("--state", "corrected") == []


def test_an_empty_list_says_so(isola: Isola) -> None:
    assert isola("decisions").out == "no decisions\n"
    assert isola("projects", "list").out.startswith("no projects; ")


def test_an_explanation_tells_the_whole_story(isola: Isola, committed: str) -> None:
    ran = isola("explain", "decision", committed)
    for said in (
        "explicit: you addressed the project",
        "state         committed",
        "attempt 1  ANSWERED",
        "write 0  written mem-",
        "decision  we decided to round every invoice",
    ):
        assert said in ran.out, ran.out


def test_an_explanation_of_a_correction_names_both_sides(isola: Isola, committed: str) -> None:
    corrected = isola("correct", committed, "search", "--json").json
    old = isola("explain", "decision", committed, "--json").json
    assert old["successor"] == corrected["new"]["id"]
    assert old["memories"] == []
    assert len(old["retired_memories"]) == 1
    assert [each["state"] for each in old["rewinds"]] == ["DONE"]
    assert corrected["undone"]["retired_memories"] == old["retired_memories"]
    new = isola("explain", "decision", corrected["new"]["id"])
    assert f"this corrects {committed}" in new.out


def test_recall_stays_inside_the_project(isola: Isola, committed: str) -> None:
    found = isola("recall", "billing", "invoice cents", "--json").json
    assert found["project"] == "billing"
    assert [each["content"] for each in found["memories"]] == [
        "we decided to round every invoice to whole cents"
    ]
    assert isola("recall", "search", "invoice cents", "--json").json["memories"] == []
    assert "remembers nothing" in isola("recall", "search", "invoice cents").out
    assert "whole cents" in isola("recall", "billing", "round").out


@pytest.mark.parametrize("query", ["", "AND", 'a"b', "*", "C++ it's GB/s", "账单", "x" * 10_000])
def test_any_text_is_a_query(isola: Isola, committed: str, query: str) -> None:
    assert isola("recall", "billing", query).code == 0


def test_a_corrected_memory_is_recalled_where_it_belongs(isola: Isola, committed: str) -> None:
    isola("correct", committed, "search")
    isola("tick")
    assert isola("recall", "billing", "invoice", "--json").json["memories"] == []
    assert len(isola("recall", "search", "invoice", "--json").json["memories"]) == 1


def test_a_tick_says_what_it_did(isola: Isola, home: Path, projects: None) -> None:
    (home / "config.yaml").write_text("isolation_s: 0\n")
    isola("chat", "--text", "@billing we use postgres for invoices", "--no-wait")
    assert isola("tick").out == "nothing was due\n"
    ran = isola("tick", "--deliver")
    assert ran.code == 0
    assert isola("tick", "--json").json["committed"] == 1
    assert isola("tick").out == "nothing was due\n"


def test_a_session_starts_afresh(isola: Isola, projects: None, model: FakeModel) -> None:
    isola("chat", "--text", "@billing remember the blue whale")
    isola("chat", "--text", "@billing second")
    assert b"blue whale" in model.requests[-1].raw
    ran = isola("session", "reset", "billing", "--json")
    assert ran.json == {
        "session": "proj:billing",
        "generation": 1,
        "project": "billing",
        "lane": "",
        "harness": "default:llm",
        "waiting": 0,
        "unknown": 0,
    }
    isola("chat", "--text", "@billing third")
    assert b"blue whale" not in model.requests[-1].raw


def test_a_session_is_not_reset_while_another_process_drives_it(
    isola: Isola, home: Path, projects: None
) -> None:
    isola("chat", "--text", "@billing one")

    async def hold() -> None:
        store = await SqliteStore.open(home / "isola.db", SystemClock())
        me = SystemProcesses(home).me()

        def take(tx: Transaction) -> None:
            (stored,) = tx.all("SELECT id FROM sessions")
            sessions.take_lease(tx, stored["id"], me)

        await store.write(take)
        await store.close()

    asyncio.run(hold())
    ran = isola("session", "reset", "billing", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "conflict")
    assert ran.json["error"]["details"]["pid"] == os.getpid()


def test_what_waits_goes_to_the_fresh_session(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    isola("chat", "--text", "@billing the old secret plan")
    isola("chat", "--text", "@billing waiting", "--no-wait")
    ran = isola("session", "reset", "billing")
    assert "1 waiting in the outbox go to the fresh session" in ran.out
    isola("tick", "--deliver")
    assert model.requests[-1].user == "waiting"
    assert b"secret plan" not in model.requests[-1].raw


def test_a_project_without_a_session_has_nothing_to_reset(isola: Isola, projects: None) -> None:
    ran = isola("session", "reset", "billing", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "not_found")
