"""Paging through a long history, and that no look at it reads all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from isola_core.clock import SystemClock
from isola_core.model import DecisionState
from isola_core.store import decisions, history, memories, sessions
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Connection, Transaction

LOOKS: dict[str, Callable[[Transaction], object]] = {
    "newest": lambda tx: decisions.latest_decisions(tx, "o", limit=80),
    "open": lambda tx: decisions.latest_decisions(
        tx, "o", limit=80, states=(DecisionState.TENTATIVE,)
    ),
    "by id": lambda tx: decisions.decision_views(tx, "o", [f"d-{n}" for n in range(80)]),
    "due": lambda tx: decisions.due_decisions(tx, "o"),
    "deadline": lambda tx: decisions.next_deadline(tx, "o"),
    "writes": lambda tx: memories.ready_write_tasks(tx, "o", 50),
    "stale writes": lambda tx: memories.stale_write_tasks(tx, "o", 1),
    "page": lambda tx: history.page(tx, "o", 40),
    "work": lambda tx: sessions.sessions_with_work(tx, "o", "m"),
}


class Explaining:
    """A connection that also asks how each statement is run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plans: list[str] = []

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Any:
        rows = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
        self.plans += [str(row["detail"]) for row in rows]
        return self._connection.execute(sql, parameters)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
async def test_no_look_reads_all_of_a_persons_decisions_or_deliveries(
    tmp_path: Path, look: Callable[[Transaction], object]
) -> None:
    def explained(tx: Transaction) -> list[str]:
        connection = Explaining(tx._connection)
        look(Transaction(connection, tx.now))
        return connection.plans

    store = await SqliteStore.open(tmp_path / "isola.db", SystemClock())
    try:
        plans = await store.read(explained)
    finally:
        await store.close()
    assert plans
    for step in plans:
        assert not (step.startswith("SEARCH d") and step.endswith("(owner=?)")), plans
        if step.startswith("SEARCH l USING INDEX"):
            assert "deliveries_open" in step or "decision=?" in step, plans
        assert not step.startswith("SCAN l"), plans
        assert step != "SEARCH l", plans  # the newest of all deliveries, one after the other
