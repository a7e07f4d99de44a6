"""A look at the store that changes nothing: what doctor asks. It never creates a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from isola_core.doctor import ProjectFolder, SqliteReport, StoreReport, StuckReport
from isola_core.errors import StoreError, StoreTooNew
from isola_core.model import Project
from isola_core.ports import ProcessIdentity
from isola_core.store.projects import list_projects, local_owner
from isola_core.store.sqlite import APPLICATION_ID, migrations
from isola_core.store.transaction import Row, Transaction

T = TypeVar("T")

MINIMUM_SQLITE: Final = "3.35.0"
"""The oldest release that has been read through for what the statements use."""

STALE_MS: Final = 60_000
"""A deadline or heartbeat that passed for longer than this is overdue."""


def sqlite_report() -> SqliteReport:
    """The SQLite library of this Python."""
    connection = sqlite3.connect(":memory:")
    try:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
        fts5 = "ENABLE_FTS5" in options
    finally:
        connection.close()
    return SqliteReport(sqlite3.sqlite_version, MINIMUM_SQLITE, fts5)


def store_report(path: Path) -> StoreReport:
    """Schema version and damage of the database at `path`; schema None where there is none.

    Raises:
        StoreTooNew: a newer version has written it.
        StoreError: it cannot be read, or belongs to another program.
    """
    newest = migrations()[-1][0]
    if not path.exists() or path.stat().st_size == 0:
        return StoreReport(None, newest)
    with _reading(path) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise StoreError(f"{path} is a database of another program; name another store.path")
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        if schema > newest:
            raise StoreTooNew(
                f"{path} was written by a newer version of Isola (schema {schema}, this one knows "
                f"{newest})"
            )
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    damage = "" if problems == ["ok"] else "; ".join(map(str, problems))
    return StoreReport(schema, newest, damage)


def stuck_report(
    path: Path, now: int, alive: Callable[[ProcessIdentity], bool | None] = lambda _: None
) -> StuckReport:
    """What waits for a person or for a tick at `now` (UTC milliseconds).

    `alive` says whether a process still lives: the turns of a dead one are overdue at once, those
    of one that cannot be looked at once its lease has not been renewed for a while.
    """

    def look(tx: Transaction) -> StuckReport:
        def count(sql: str, *values: object) -> int:
            row = tx.one(f"SELECT count(*) AS n FROM {sql}", *values)  # noqa: S608
            return int(row["n"]) if row else 0

        newest = (
            "deliveries AS l JOIN decisions AS d ON d.id = l.decision WHERE d.state = 'TENTATIVE' "
            "AND l.attempt = (SELECT max(attempt) FROM deliveries WHERE decision = d.id) "
        )
        return StuckReport(
            unknown_deliveries=count(newest + "AND l.state = 'UNKNOWN'"),
            failed_deliveries=count(newest + "AND l.state = 'FAILED'"),
            failed_tasks=count("write_tasks WHERE state = 'FAILED'"),
            overdue=count(newest + "AND l.state = 'ANSWERED' AND d.deadline < ?", now - STALE_MS)
            + sum(_is_left(each, now, alive) for each in tx.all(_BUSY_LEASES)),
        )

    return _look(path, look, StuckReport())


_BUSY_LEASES: Final = """
SELECT * FROM leases AS e WHERE released = 0 AND EXISTS (SELECT 1 FROM deliveries
WHERE session = e.session AND state IN ('RUNNING', 'WRITTEN', 'RECEIVED'))
"""


def _is_left(lease: Row, now: int, alive: Callable[[ProcessIdentity], bool | None]) -> bool:
    holder = ProcessIdentity(lease["machine"], lease["boot"], lease["pid"], lease["started"])
    living = alive(holder)
    return not living if living is not None else lease["heartbeat"] < now - STALE_MS


def registered_projects(path: Path) -> list[Project]:
    """Every registered project, retired ones too."""

    def look(tx: Transaction) -> list[Project]:
        owner = local_owner(tx)
        return [] if owner is None else list_projects(tx, owner[0], retired=True)

    return _look(path, look, [])


def project_folders(path: Path) -> list[ProjectFolder]:
    """The registered projects that have a folder."""

    return [
        ProjectFolder(each.id, each.name, Path(each.path))
        for each in registered_projects(path)
        if each.path is not None and not each.retired
    ]


def _look(path: Path, look: Callable[[Transaction], T], nothing: T) -> T:
    if not path.exists() or path.stat().st_size == 0:
        return nothing
    with _reading(path) as connection:
        return look(Transaction(connection, 0))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    address = path.resolve().as_uri()
    connection = None
    try:
        try:
            connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=5)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            # a folder where no -shm file can be made: nobody can be writing there either
            connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
        connection.row_factory = sqlite3.Row
        yield connection
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    finally:
        if connection is not None:
            connection.close()
