"""Statements behind the explanation of one decision: every attempt, write and rewind it had."""

from __future__ import annotations

from dataclasses import dataclass

from isola_core.model import DeliveryState, RewindState, WriteTaskState
from isola_core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery with its turn. Times are UTC milliseconds; `written` None: it never left us."""

    id: str
    attempt: int
    state: DeliveryState
    session: str
    generation: int | None
    proof: str
    error: str
    failure: str
    interrupt: bool
    created: int
    written: int | None
    updated: int
    ended: int | None
    excised: bool


@dataclass(frozen=True, slots=True)
class Write:
    """One write task; `result` says what was written or which gate refused."""

    ordinal: int
    state: WriteTaskState
    attempts: int
    result: str
    updated: int


@dataclass(frozen=True, slots=True)
class Forgetting:
    """One rewind: whether a session has forgotten a turn, and what it took."""

    id: str
    delivery: str
    state: RewindState
    note: str
    attempts: int
    created: int
    updated: int


def attempts_of(tx: Transaction, decision: str) -> list[Attempt]:
    """Every attempt to deliver this decision's message, oldest first."""
    rows = tx.all(
        "SELECT l.*, t.ended, t.excised FROM deliveries AS l "
        "LEFT JOIN turns AS t ON t.delivery = l.id WHERE l.decision = ? ORDER BY l.attempt",
        decision,
    )
    return [
        Attempt(
            id=row["id"],
            attempt=row["attempt"],
            state=DeliveryState(row["state"]),
            session=row["session"],
            generation=row["generation"],
            proof=row["proof"] or "",
            error=row["error"],
            failure=row["failure"] or "",
            interrupt=bool(row["interrupt"]),
            created=row["created"],
            written=row["written"],
            updated=row["updated"],
            ended=row["ended"],
            excised=bool(row["excised"]),
        )
        for row in rows
    ]


def writes_of(tx: Transaction, decision: str) -> list[Write]:
    """The decision's write tasks in order."""
    rows = tx.all(
        "SELECT ordinal, state, attempts, result, updated FROM write_tasks WHERE decision = ? "
        "ORDER BY ordinal",
        decision,
    )
    return [
        Write(
            row["ordinal"],
            WriteTaskState(row["state"]),
            row["attempts"],
            row["result"],
            row["updated"],
        )
        for row in rows
    ]


def forgettings_of(tx: Transaction, decision: str) -> list[Forgetting]:
    """The rewinds that taking this decision back ordered."""
    rows = tx.all(
        "SELECT id, delivery, state, note, attempts, created, updated FROM rewinds "
        "WHERE decision = ? ORDER BY seq",
        decision,
    )
    return [
        Forgetting(
            row["id"],
            row["delivery"],
            RewindState(row["state"]),
            row["note"],
            row["attempts"],
            row["created"],
            row["updated"],
        )
        for row in rows
    ]


def retired_memories_of(tx: Transaction, decision: str) -> list[str]:
    """Ids, without any content, of memories that stood on this decision and are retired."""
    rows = tx.all(
        "SELECT m.id FROM memory_sources AS s JOIN memories AS m ON m.id = s.memory "
        "WHERE s.decision = ? AND m.state = 'RETIRED' ORDER BY m.seq",
        decision,
    )
    return [row["id"] for row in rows]
