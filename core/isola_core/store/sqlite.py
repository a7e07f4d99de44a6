"""The SQLite engine: connections, transactions, migrations, the change feed.

A use case hands `write` one function that runs whole on the database thread, between BEGIN
IMMEDIATE and COMMIT: eight awaits for the same statements cost forty times as much, and a cancelled
caller can never cut a transaction in two. Reads have a connection of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite

from isola_core.errors import InvalidInput, StoreError, StoreTooNew
from isola_core.paths import ensure_private_dir, real_path
from isola_core.ports import Clock
from isola_core.store.transaction import Transaction
from isola_core.text import safe_label

T = TypeVar("T")

APPLICATION_ID: Final = 0x49534F4C
"""`ISOL`, so that we never migrate somebody else's database."""

BUSY_TIMEOUT_MS: Final = 15_000
"""How long a transaction waits for another process's before it fails as busy."""


class SqliteStore:
    """One database file, one writing and one reading connection. Always close it."""

    def __init__(
        self, path: Path, clock: Clock, writer: aiosqlite.Connection, reader: aiosqlite.Connection
    ) -> None:
        self.path = path
        self.clock = clock
        self.transactions = 0
        """How many writing transactions this store has committed."""
        self._writer = writer
        self._reader = reader
        self._waiting: set[asyncio.Event] = set()

    @classmethod
    async def open(cls, path: Path, clock: Clock) -> SqliteStore:
        """Open or create the database at `path` (0600, a new folder 0700) and migrate it.

        Raises:
            StoreTooNew: a newer version has written it.
            StoreError: it is no Isola database, is damaged, or cannot be written.
        """
        try:
            await asyncio.to_thread(_prepare_file, path)
        except OSError as error:
            raise StoreError(f"cannot create the database {path}: {error.strerror}") from error
        writer = _connector(path)
        try:
            await writer
        except sqlite3.Error as error:
            raise _translated(error, path) from error
        try:
            await _on_thread(writer, lambda connection: migrate(connection, path))
            reader = await _connector(path)
        except BaseException:
            await writer.close()
            raise
        await _on_thread(reader, lambda connection: _set_up(connection, reading=True))
        return cls(path, clock, writer, reader)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one writing transaction and commit it; an exception rolls back.

        Raises:
            StoreError: the database refused (busy, full, read-only, damaged); nothing was stored.
        """
        now = self.clock.now()
        result = await _on_thread(
            self._writer, lambda connection: self._write(connection, work, now)
        )
        self.wake()
        return result

    def _write(
        self, connection: sqlite3.Connection, work: Callable[[Transaction], T], now: int
    ) -> T:
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = Transaction(connection, now)
                result = work(transaction)
                transaction.flush_changes()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error
        except UnicodeEncodeError as error:
            raise _no_text(error) from error
        self.transactions += 1
        return result

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot; it cannot write."""
        now = self.clock.now()

        def run(connection: sqlite3.Connection) -> T:
            try:
                connection.execute("BEGIN")
                try:
                    return work(Transaction(connection, now))
                finally:
                    connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise _translated(error, self.path) from error
            except UnicodeEncodeError as error:
                raise _no_text(error) from error

        return await _on_thread(self._reader, run)

    def wake(self) -> None:
        """Let everybody in `wait_for_change` look at once."""
        for each in self._waiting:
            each.set()

    async def wait_for_change(self, seen: int, poll_s: float = 0.25) -> int:
        """Wait until the change sequence is past `seen`, by whatever process; the new end of it."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            while True:
                woken.clear()
                last = await self.last_change()
                if last != seen:
                    return last
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(poll_s):
                        await woken.wait()
        finally:
            self._waiting.discard(woken)

    async def last_change(self) -> int:
        """The number of the newest change, 0 in a new database."""

        def last(transaction: Transaction) -> int:
            row = transaction.one("SELECT coalesce(max(seq), 0) AS seq FROM changes")
            return int(row["seq"]) if row else 0

        return await self.read(last)

    async def changes_since(self, seen: int) -> list[tuple[int, str, str]]:
        """(number, kind, id) of every change past `seen`, in order."""
        rows = await self.read(
            lambda tx: tx.all("SELECT seq, kind, id FROM changes WHERE seq > ? ORDER BY seq", seen)
        )
        return [(row["seq"], row["kind"], row["id"]) for row in rows]

    async def close(self) -> None:
        """Close both connections. A connection left open would keep the interpreter alive."""
        try:
            await self._reader.close()
        finally:
            await self._writer.close()


async def _on_thread(
    connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]
) -> T:
    # aiosqlite offers single statements only; its own queue runs any function on the same thread.
    execute: Any = connection._execute
    result: T = await execute(lambda: work(connection._conn))
    return result


def _connector(path: Path) -> aiosqlite.Connection:
    # autocommit mode: BEGIN and COMMIT are ours alone
    return aiosqlite.connect(path, isolation_level=None, cached_statements=256)


def _prepare_file(path: Path) -> None:
    """Create the file as 0600, or make one that is ours so; another program's keeps its rights.

    Nor are those of a folder changed that was there before: it holds more than the database.
    """
    if not path.parent.exists():
        ensure_private_dir(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(real_path(path), flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreError(f"{path} is not a regular file; name another store.path")
        start = os.read(descriptor, 72)
        if not start or _application(start) == APPLICATION_ID:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _application(start: bytes) -> int | None:
    """The application id in the beginning of a database file; None where it is none."""
    if len(start) < 72 or not start.startswith(b"SQLite format 3\0"):
        return None
    return int.from_bytes(start[68:72], "big")


def _set_up(connection: sqlite3.Connection, *, reading: bool = False) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    if reading:
        connection.execute("PRAGMA query_only = ON")


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration of this version, in order."""
    folder = resources.files("isola_core.store").joinpath("migrations", "sqlite")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text("utf-8")) for name in names]


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Set the connection up and bring the schema to this version; once, whoever else starts."""
    try:
        _set_up(connection)
        version = _version(connection, path)
        steps = migrations()
        newest = steps[-1][0]
        if version > newest:
            raise StoreTooNew(
                f"{path} was written by a newer version of Isola (schema {version}, this one knows "
                f"{newest}). Nothing was changed: upgrade Isola, or name another store.path."
            )
        _enter_wal(connection)
        if version == newest:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _version(connection, path)
            for number, script in steps:
                if number > version:
                    for statement in statements(script):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _version(connection: sqlite3.Connection, path: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program; name another store.path")
    return int(version)


def _enter_wal(connection: sqlite3.Connection) -> None:
    # The switch takes an exclusive lock and does not honour busy_timeout when others start too.
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            if mode == "wal":
                return
            if time.monotonic() > deadline:
                raise StoreError("the file system of the database does not support WAL")
        time.sleep(0.02)


def statements(script: str) -> list[str]:
    """The statements of a script, so that they run inside our own transaction."""
    found: list[str] = []
    rest = ""
    for line in script.splitlines():
        rest += line + "\n"
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found


def _no_text(error: UnicodeEncodeError) -> InvalidInput:
    shown = safe_label(error.object, 60)
    return InvalidInput(f"{shown!r} holds bytes that are no text; nothing was stored")


def _translated(error: sqlite3.Error, path: Path) -> StoreError:
    text = str(error)
    match getattr(error, "sqlite_errorname", "").split("_"):
        case ["SQLITE", "BUSY" | "LOCKED", *_]:
            return StoreError(
                f"the database {path} is busy in another process; nothing was stored, try again",
                retry=True,
            )
        case ["SQLITE", "FULL", *_]:
            return StoreError(f"the disk is full: nothing was stored in {path}; free some space")
        case ["SQLITE", "READONLY", *_] | ["SQLITE", "CANTOPEN", *_]:
            return StoreError(
                f"the database {path} cannot be written ({text}); check the rights of file and "
                "folder"
            )
        case ["SQLITE", "CORRUPT" | "NOTADB", *_]:
            return StoreError(
                f"{path} is damaged or no database ({text}). Nothing was changed: restore a backup "
                "or name another store.path."
            )
        case ["SQLITE", "IOERR", *_]:
            return StoreError(f"reading or writing {path} failed ({text}); nothing was stored")
        case _:
            return StoreError(f"the database {path} refused: {text}")
