"""The SQLite engine: one migration for many starters, whole transactions, clear refusals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from isola_core.errors import StoreError, StoreTooNew
from isola_core.store import sqlite
from isola_core.store.sqlite import APPLICATION_ID, SqliteStore
from isola_core.store.transaction import Transaction
from tests.core.world import ManualClock, World

ROOT = Path(__file__).parents[3]

OPENER = """
import asyncio, sys
from pathlib import Path
from isola_core.clock import SystemClock, RandomIds
from isola_core.store.sqlite import SqliteStore
from isola_core.service.settings import ensure_owner

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), SystemClock())
    owner = await ensure_owner(store, RandomIds(), "machine", "name")
    print(owner.id)
    await store.close()

asyncio.run(main())
"""


def test_ten_processes_on_one_new_database_migrate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / "isola.db"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": "core"},
        )
        for _ in range(10)
    ]
    results = [each.communicate(timeout=120) for each in started]
    assert [each.returncode for each in started] == [0] * 10, results
    assert len({stdout for stdout, _ in results}) == 1, "they agree on whose store it is"
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM owners").fetchone() == (1,)


async def test_files_are_private(world: World) -> None:
    for file in world.store.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(world.store.path.parent.stat().st_mode) == 0o700


async def test_a_database_of_a_newer_version_is_refused_untouched(world: World) -> None:
    path = world.store.path
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9999")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="newer version"):
        await SqliteStore.open(path, ManualClock())
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore.open(path, ManualClock())
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all, " * 50, b"SQLite format 3\x00" * 99])
async def test_a_damaged_file_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "isola.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|no database"):
        await SqliteStore.open(path, ManualClock())
    assert path.read_bytes() == content


async def test_a_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot"):
        await SqliteStore.open(tmp_path / "file" / "isola.db", ManualClock())


async def test_an_exception_rolls_the_whole_use_case_back(world: World) -> None:
    def work(tx: Transaction) -> None:
        tx.run("INSERT INTO conversations (id, owner, created) VALUES ('x', ?, 1)", _owner(world))
        tx.changed("conversation", "x")
        raise ValueError("boom")

    before = await world.store.last_change()
    with pytest.raises(ValueError, match="boom"):
        await world.store.write(work)
    assert await world.rows("SELECT * FROM conversations WHERE id = 'x'") == []
    assert await world.store.last_change() == before


async def test_a_cancelled_caller_never_cuts_a_transaction(world: World) -> None:
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(tx: Transaction) -> None:
        loop.call_soon_threadsafe(entered.set)
        for number in range(300):
            tx.run(
                "INSERT INTO conversations (id, owner, created) VALUES (?, ?, 1)",
                f"x{number}",
                _owner(world),
            )

    task = asyncio.create_task(world.store.write(work))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await world.store.write(lambda tx: None)
    (row,) = await world.rows("SELECT count(*) AS n FROM conversations WHERE id LIKE 'x%'")
    assert row["n"] == 300


async def test_a_read_cannot_write(world: World) -> None:
    with pytest.raises(StoreError, match=r"readonly|read-only|cannot be written"):
        await world.store.read(lambda tx: tx.run("DELETE FROM messages"))


async def test_changes_of_another_process_are_seen(world: World) -> None:
    seen = await world.store.last_change()
    waiting = asyncio.create_task(world.store.wait_for_change(seen, poll_s=0.01))
    other = await SqliteStore.open(world.store.path, world.clock)
    await other.write(lambda tx: tx.changed("project", "p"))
    await other.close()
    assert await asyncio.wait_for(waiting, 5) == seen + 1
    assert await world.store.changes_since(seen) == [(seen + 1, "project", "p")]


async def test_everybody_who_waits_is_woken_by_a_change(world: World) -> None:
    seen = await world.store.last_change()
    waiting = [asyncio.create_task(world.store.wait_for_change(seen, poll_s=60)) for _ in range(3)]
    await asyncio.sleep(0)
    await world.store.write(lambda tx: tx.changed("project", "p"))
    assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [seen + 1] * 3


@pytest.mark.parametrize(
    ("sql", "invariant"),
    [
        (
            "INSERT INTO decisions (id, owner, message, mode, state, project, explanation, created,"
            " updated) SELECT 'd-2', owner, message, mode, state, project, explanation, 1, 1"
            " FROM decisions",
            "one active decision a message",
        ),
        (
            "INSERT INTO write_tasks (decision, ordinal, state, created, updated)"
            " SELECT decision, ordinal, 'PENDING', 1, 1 FROM write_tasks",
            "one write task a decision and ordinal",
        ),
        (
            "INSERT INTO memories (id, scope, owner, kind, durability, content, hash, state, author,"
            " created, updated) SELECT 'x', scope, owner, kind, durability, content, hash, state,"
            " author, 1, 1 FROM memories",
            "one active memory of an owner, scope and content",
        ),
        ("UPDATE deliveries SET state = 'SENT'", "states are checked"),
        ("UPDATE decisions SET project = NULL", "an attributed decision names its project"),
    ],
)
async def test_the_database_itself_keeps_the_invariants(
    world: World, sql: str, invariant: str
) -> None:
    await world.say("@billing we decided this")
    await world.deliver()
    await world.pass_window()
    with pytest.raises(StoreError, match="constraint"):
        await world.store.write(lambda tx: tx.run(sql))


async def test_two_live_deliveries_of_a_session_are_impossible(world: World) -> None:
    await world.say("@billing one")
    await world.say("@billing two")
    with pytest.raises(StoreError, match="constraint"):
        await world.store.write(lambda tx: tx.run("UPDATE deliveries SET state = 'WRITTEN'"))


def test_every_statement_of_a_migration_runs_on_its_own() -> None:
    ((number, script), *_) = sqlite.migrations()
    found = sqlite.statements(script)
    assert number == 1
    connection = sqlite3.connect(":memory:")
    for statement in found:
        connection.execute(statement)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
    assert tables.fetchone()[0] >= 24
    assert APPLICATION_ID == 0x49534F4C


def _owner(world: World) -> str:
    return world.core.owner.id


async def test_files_and_folders_of_others_keep_their_rights(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    folder.chmod(0o755)
    text = folder / "notes.txt"
    text.write_text("mine\n" * 100)
    foreign = folder / "foreign.db"
    with contextlib.closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    for file in (text, foreign, fifo):
        file.chmod(0o644)
        with pytest.raises(StoreError):
            await SqliteStore.open(file, ManualClock())
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
    ours = folder / "isola.db"
    for _ in range(2):
        store = await SqliteStore.open(ours, ManualClock())
        await store.close()
        assert stat.S_IMODE(ours.stat().st_mode) == 0o600
        ours.chmod(0o644)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
