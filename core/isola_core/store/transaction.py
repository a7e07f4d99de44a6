"""What a statement needs: one connection inside one transaction, and its time.

The statement modules beside this file are plain functions over a `Transaction`; they run on the
database thread, whole, and know nothing of asyncio. Another engine brings another connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Row(Protocol):
    """One row, read by column name."""

    def __getitem__(self, key: str, /) -> Any: ...

    def keys(self) -> list[str]: ...


class Cursor(Protocol):
    """The part of the DB-API cursor that statements use."""

    rowcount: int

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """The part of the DB-API connection that statements use."""

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Any: ...


class Transaction:
    """One transaction on one connection. `now` is its time in UTC milliseconds.

    `statements` counts what was executed: tests assert counts instead of seconds.
    """

    def __init__(self, connection: Connection, now: int) -> None:
        self._connection = connection
        self.now = now
        self.statements = 0
        self.changes: list[tuple[str, str]] = []

    def all(self, sql: str, *parameters: object) -> list[Row]:
        """Every row of a query."""
        self.statements += 1
        rows: list[Row] = self._connection.execute(sql, parameters).fetchall()
        return rows

    def one(self, sql: str, *parameters: object) -> Row | None:
        """The first row of a query, or None."""
        self.statements += 1
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def run(self, sql: str, *parameters: object) -> int:
        """Execute a statement; the number of rows it changed."""
        self.statements += 1
        count: int = self._connection.execute(sql, parameters).rowcount
        return count

    def changed(self, kind: str, subject: str) -> None:
        """Note in the change sequence that `subject` changed; watchers of every process see it."""
        self.changes.append((kind, subject))

    def flush_changes(self) -> None:
        """Write the noted changes, each once. The engine calls it before it commits."""
        for kind, subject in dict.fromkeys(self.changes):
            self.run("INSERT INTO changes (kind, id, at) VALUES (?, ?, ?)", kind, subject, self.now)
        self.changes.clear()


def marks(values: Iterable[object]) -> str:
    """Placeholders for an IN list: `?, ?, ?`."""
    return ", ".join("?" for _ in values)
