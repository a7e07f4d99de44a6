"""Looks into a database without changing, creating or migrating it, for the readiness checks.

It opens the file read-only with the standard library, in a thread of the caller's choice, and works
on a database of any version: a table that is not there counts as empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isola_core.errors import StoreError, StoreTooNew
from isola_core.ports import ProcessIdentity
from isola_core.store.sqlite import APPLICATION_ID, migrations

SQLITE_MINIMUM: Final = "3.35.0"

OVERDUE_MS: Final = 60_000
"""How long a tick may be late before somebody is told: every running program ticks each second."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """A database: its schema (None: there is no file), the newest one known, what is damaged."""

    schema: int | None
    newest: int
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Counts of what waits for a person or for a tick."""

    unknown: int = 0
    failed: int = 0
    failed_writes: int = 0
    overdue: int = 0
    orphaned: int = 0
    """Turns whose process has died."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A project row, as far as a check needs it."""

    id: str
    name: str
    path: str | None
    harness: str | None
    retired: bool


def sqlite_version() -> tuple[str, bool]:
    """(version of the SQLite library, whether it has FTS5)."""
    with sqlite3.connect(":memory:") as connection:
        options = [row[0] for row in connection.execute("PRAGMA compile_options")]
    return sqlite3.sqlite_version, "ENABLE_FTS5" in options


def inspect(path: Path) -> Inspected:
    """Schema and damage of the database at `path`.

    Raises:
        StoreTooNew: a newer version has written it.
        StoreError: it cannot be opened, or it is another program's.
    """
    newest = migrations()[-1][0]
    with _reading(path) as connection:
        if connection is None:
            return Inspected(None, newest)
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != APPLICATION_ID:
            raise StoreError(f"{path} is a database of another program; name another store.path")
        if schema > newest:
            raise StoreTooNew(
                f"{path} was written by a newer version of Isola (schema {schema}, this one knows "
                f"{newest})"
            )
        lines = [row[0] for row in connection.execute("PRAGMA quick_check(10)")]
        return Inspected(schema, newest, "" if lines == ["ok"] else "; ".join(lines))


def find_stuck(path: Path, now: int, alive: Callable[[ProcessIdentity], bool | None]) -> Stuck:
    """What waits in the database at `path`; `now` in UTC milliseconds."""
    newest = "AND l.attempt = (SELECT max(attempt) FROM deliveries WHERE decision = d.id)"
    tentative = f"JOIN decisions AS d ON d.id = l.decision AND d.state = 'TENTATIVE' {newest}"
    with _reading(path) as connection:
        if connection is None or not _has_table(connection, "deliveries"):
            return Stuck()

        def count(sql: str, *values: object) -> int:
            (found,) = connection.execute(sql, values).fetchone()
            return int(found)

        live = connection.execute(
            "SELECT DISTINCT e.machine, e.boot, e.pid, e.started FROM leases AS e "
            "JOIN deliveries AS l ON l.session = e.session "
            "AND l.state IN ('RUNNING', 'WRITTEN', 'RECEIVED') WHERE e.released = 0"
        ).fetchall()
        return Stuck(
            unknown=count(
                f"SELECT count(*) FROM deliveries AS l {tentative} WHERE l.state = 'UNKNOWN'"  # noqa: S608
            ),
            failed=count(
                f"SELECT count(*) FROM deliveries AS l {tentative} "  # noqa: S608
                "WHERE l.state IN ('FAILED', 'CANCELLED')"
            ),
            failed_writes=count("SELECT count(*) FROM write_tasks WHERE state = 'FAILED'"),
            overdue=count(
                f"SELECT count(*) FROM deliveries AS l {tentative} "  # noqa: S608
                "WHERE l.state = 'ANSWERED' AND d.held = 0 AND d.deadline < ?",
                now - OVERDUE_MS,
            ),
            orphaned=sum(alive(ProcessIdentity(*row)) is False for row in live),
        )


def registered_projects(path: Path) -> list[Registered]:
    """The projects of the database at `path`, retired ones too; none where there is no file."""
    with _reading(path) as connection:
        if connection is None or not _has_table(connection, "projects"):
            return []
        rows = connection.execute(
            "SELECT id, name, path, harness, retired FROM projects ORDER BY created, id"
        )
        return [
            Registered(project, name, folder, harness, bool(retired))
            for project, name, folder, harness, retired in rows
        ]


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """A read-only connection, None where there is no file or an empty one."""
    try:
        if not path.is_file() or not path.stat().st_size:
            yield None
            return
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the database {path} cannot be opened: {error}") from error
    try:
        connection.execute("PRAGMA query_only = ON")
        yield connection
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} cannot be read: {error}") from error
    finally:
        connection.close()


def _has_table(connection: sqlite3.Connection, table: str) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    return bool(found[0])
