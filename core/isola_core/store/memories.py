"""Statements about memories, their sources and history, write tasks, and learned counts.

Every read of memories takes a `ReadSet`; there is no read without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isola_core.model import (
    MEMORY_TRANSITIONS,
    WRITE_TASK_TRANSITIONS,
    MemoryKind,
    MemoryState,
    MemoryView,
    ReadSet,
    WriteTaskState,
    check_transition,
)
from isola_core.store.search import (
    add_to_index,
    remove_from_index,
    scope_sequences,
    search_index,
)
from isola_core.store.transaction import Row, Transaction, marks


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to be written; `terms` make it findable, `hash` tells equal texts of a scope."""

    id: str
    scope: str
    owner: str
    kind: MemoryKind
    durability: str
    content: str
    hash: str
    terms: tuple[str, ...]
    conversation: str
    author: str


@dataclass(frozen=True, slots=True)
class WriteTask:
    """One text waiting to be written after its decision's commit."""

    seq: int
    decision: str
    ordinal: int
    text: str
    masked: bool
    raw: bool
    kind: str | None
    state: WriteTaskState
    attempts: int
    conversation: str
    scope: str
    decision_state: str


def insert_memory(tx: Transaction, memory: NewMemory, decision: str | None) -> None:
    """Write a memory, its source, its history and its index entry."""
    tx.run(
        "INSERT INTO memories (id, scope, owner, kind, durability, content, hash, state, "
        "conversation, author, created, updated) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 'ACTIVE', ?, ?, ?, ?)",
        memory.id,
        memory.scope,
        memory.owner,
        memory.kind,
        memory.durability,
        memory.content,
        memory.hash,
        memory.conversation,
        memory.author,
        tx.now,
        tx.now,
    )
    row = tx.one("SELECT seq FROM memories WHERE id = ?", memory.id)
    assert row is not None
    add_to_index(tx, scope_sequences(tx, [memory.scope])[memory.scope], row["seq"], memory.terms)
    if decision is not None:
        add_source(tx, memory.id, decision)
    _remember(tx, memory.id, "written", MemoryState.ACTIVE, f"by {memory.author}")


def add_source(tx: Transaction, memory: str, decision: str) -> None:
    """One more decision stands behind this memory."""
    tx.run(
        "INSERT INTO memory_sources (memory, decision, live, created) VALUES (?, ?, 1, ?) "
        "ON CONFLICT (memory, decision) DO UPDATE SET live = 1",
        memory,
        decision,
        tx.now,
    )


def memory_by_hash(tx: Transaction, owner: str, scope: str, digest: str) -> str | None:
    """The ACTIVE memory of exactly this scope with this content."""
    row = tx.one(
        "SELECT id FROM memories WHERE owner = ? AND scope = ? AND hash = ? AND state = 'ACTIVE'",
        owner,
        scope,
        digest,
    )
    return row["id"] if row else None


def retire_by_source(tx: Transaction, decision: str, reason: str) -> list[str]:
    """A decision was taken back: memories without another live source are retired; their ids."""
    tx.run("UPDATE memory_sources SET live = 0 WHERE decision = ?", decision)
    rows = tx.all(
        "SELECT m.* FROM memories AS m JOIN memory_sources AS s ON s.memory = m.id "
        "WHERE s.decision = ? AND m.state = 'ACTIVE' AND NOT EXISTS "
        "(SELECT 1 FROM memory_sources AS o WHERE o.memory = m.id AND o.live = 1)",
        decision,
    )
    for row in rows:
        _retire(tx, row, reason)
    return [row["id"] for row in rows]


def retired_by_source(tx: Transaction, decision: str) -> list[str]:
    """RETIRED memories that this decision once stood behind."""
    rows = tx.all(
        "SELECT m.id FROM memories AS m JOIN memory_sources AS s ON s.memory = m.id "
        "WHERE s.decision = ? AND m.state = 'RETIRED'",
        decision,
    )
    return [row["id"] for row in rows]


def _retire(tx: Transaction, row: Row, reason: str) -> None:
    check_transition(MEMORY_TRANSITIONS, MemoryState(row["state"]), MemoryState.RETIRED)
    tx.run("UPDATE memories SET state = 'RETIRED', updated = ? WHERE id = ?", tx.now, row["id"])
    remove_from_index(tx, scope_sequences(tx, [row["scope"]])[row["scope"]], row["seq"])
    _remember(tx, row["id"], "retired", MemoryState.RETIRED, reason)


def _remember(tx: Transaction, memory: str, event: str, state: MemoryState, reason: str) -> None:
    tx.run(
        "INSERT INTO memory_history (memory, event, state, reason, at) VALUES (?, ?, ?, ?, ?)",
        memory,
        event,
        state,
        reason,
        tx.now,
    )
    tx.changed("memory", memory)


def search_memories(
    tx: Transaction, read_set: ReadSet, terms: Sequence[str], limit: int
) -> list[list[MemoryView]]:
    """For each scope of the read set its best hits; the scopes are merged by rank above."""
    sequences = scope_sequences(tx, read_set.scopes)
    return [
        [
            _memory(row, row["score"])
            for row in search_index(tx, sequences[scope], scope, read_set.owner, terms, limit)
        ]
        for scope in read_set.scopes
        if scope in sequences
    ]


def _visible(read_set: ReadSet) -> tuple[str, list[object]]:
    """The one condition of every leg that does not search: scope, owner and state."""
    return (
        f"scope IN ({marks(read_set.scopes)}) AND (visibility = 'shared' OR owner = ?) "
        "AND state = 'ACTIVE'",
        [*read_set.scopes, read_set.owner],
    )


def recent_memories(tx: Transaction, read_set: ReadSet, limit: int) -> list[MemoryView]:
    """The newest ACTIVE memories of the read set, newest first."""
    where, values = _visible(read_set)
    rows = tx.all(
        f"SELECT * FROM memories WHERE {where} ORDER BY seq DESC LIMIT ?",  # noqa: S608
        *values,
        limit,
    )
    return [_memory(row, 0.0) for row in rows]


def count_memories(tx: Transaction, read_set: ReadSet) -> int:
    """How many ACTIVE memories the read set holds."""
    where, values = _visible(read_set)
    row = tx.one(f"SELECT count(*) AS n FROM memories WHERE {where}", *values)  # noqa: S608
    return int(row["n"]) if row else 0


def memories_of_decision(tx: Transaction, read_set: ReadSet, decision: str) -> list[MemoryView]:
    """ACTIVE memories of the read set that this decision stands behind."""
    where, values = _visible(read_set)
    rows = tx.all(
        "SELECT * FROM memories WHERE id IN "  # noqa: S608
        f"(SELECT memory FROM memory_sources WHERE decision = ? AND live = 1) AND {where} "
        "ORDER BY seq",
        decision,
        *values,
    )
    return [_memory(row, 0.0) for row in rows]


def _memory(row: Row, score: float) -> MemoryView:
    return MemoryView(
        id=row["id"],
        scope=row["scope"],
        kind=MemoryKind(row["kind"]),
        durability=row["durability"],
        content=row["content"],
        created=row["created"],
        state=MemoryState(row["state"]),
        score=score,
    )


def insert_write_task(
    tx: Transaction, decision: str, ordinal: int, text: str | None, kind: str | None
) -> None:
    """Queue one write; `text` None stands for the message's own text."""
    tx.run(
        "INSERT INTO write_tasks (decision, ordinal, text, kind, state, created, updated) "
        "VALUES (?, ?, ?, ?, 'PENDING', ?, ?)",
        decision,
        ordinal,
        text,
        kind,
        tx.now,
        tx.now,
    )


_TASK = (
    "SELECT w.*, coalesce(w.text, m.text) AS body, m.masked, m.raw, m.conversation, p.scope, "
    "d.state AS d_state FROM write_tasks AS w JOIN decisions AS d ON d.id = w.decision "
    "JOIN messages AS m ON m.id = d.message "
    "JOIN projects AS p ON p.owner = d.owner AND p.id = d.project "
)
_OPEN_TASKS = (
    _TASK + "WHERE w.state IN ('PENDING', 'RUNNING') AND coalesce(d.owner, '') = ? AND w.state = "
)
"""Begins at the few open tasks: their index's condition word for word, and an owner that no index
serves, or SQLite reads all of a person's decisions at every tick."""


def ready_write_tasks(tx: Transaction, owner: str, limit: int) -> list[WriteTask]:
    """Waiting tasks whose decision is committed, oldest first."""
    rows = tx.all(
        _OPEN_TASKS + "'PENDING' AND d.state = 'COMMITTED' ORDER BY w.seq LIMIT ?",
        owner,
        limit,
    )
    return [_task(row) for row in rows]


def stale_write_tasks(tx: Transaction, owner: str, before: int) -> list[WriteTask]:
    """Tasks that have been RUNNING since before `before`: whoever ran them is gone."""
    rows = tx.all(
        _OPEN_TASKS + "'RUNNING' AND w.updated < ? ORDER BY w.seq",
        owner,
        before,
    )
    return [_task(row) for row in rows]


def open_write_tasks(tx: Transaction, decision: str) -> list[WriteTask]:
    """A decision's tasks that can still be cancelled."""
    rows = tx.all(
        _TASK + "WHERE w.decision = ? AND w.state IN ('PENDING', 'RUNNING') ORDER BY w.ordinal",
        decision,
    )
    return [_task(row) for row in rows]


def write_task_results(tx: Transaction, decision: str) -> list[tuple[int, WriteTaskState, str]]:
    """(ordinal, state, result) of every task of a decision."""
    rows = tx.all(
        "SELECT ordinal, state, result FROM write_tasks WHERE decision = ? ORDER BY ordinal",
        decision,
    )
    return [(row["ordinal"], WriteTaskState(row["state"]), row["result"]) for row in rows]


def move_write_task(
    tx: Transaction, task: WriteTask, state: WriteTaskState, result: str = ""
) -> None:
    """Take a task one step along its table; RUNNING counts an attempt."""
    check_transition(WRITE_TASK_TRANSITIONS, task.state, state)
    tx.run(
        "UPDATE write_tasks SET state = ?, result = ?, attempts = attempts + ?, updated = ? "
        "WHERE seq = ? AND state = ?",
        state,
        result,
        int(state is WriteTaskState.RUNNING),
        tx.now,
        task.seq,
        task.state,
    )
    tx.changed("decision", task.decision)


def _task(row: Row) -> WriteTask:
    return WriteTask(
        seq=row["seq"],
        decision=row["decision"],
        ordinal=row["ordinal"],
        text=row["body"],
        masked=bool(row["masked"]),
        raw=bool(row["raw"]),
        kind=row["kind"],
        state=WriteTaskState(row["state"]),
        attempts=row["attempts"],
        conversation=row["conversation"],
        scope=row["scope"],
        decision_state=row["d_state"],
    )


def judge_blobs(tx: Transaction, owner: str, projects: Iterable[str] = ()) -> dict[str, bytes]:
    """The packed word counts of these projects (all of them when none is named)."""
    wanted = list(projects)
    rows = tx.all(
        "SELECT project, blob FROM judge_state WHERE owner = ?"  # noqa: S608
        + (f" AND project IN ({marks(wanted)})" if wanted else ""),
        owner,
        *wanted,
    )
    return {row["project"]: row["blob"] for row in rows}


def save_judge_blobs(tx: Transaction, owner: str, blobs: Mapping[str, bytes]) -> None:
    """Replace the packed word counts of these projects."""
    for project, blob in blobs.items():
        tx.run(
            "INSERT INTO judge_state (owner, project, version, blob) VALUES (?, ?, 1, ?) "
            "ON CONFLICT (owner, project) DO UPDATE SET version = version + 1, "
            "blob = excluded.blob",
            owner,
            project,
            blob,
        )


def learnable(tx: Transaction, owner: str, limit: int) -> list[tuple[str, str, str]]:
    """(decision, project, text) of committed decisions that are not in the counts yet.

    Weak labels are left out: what the person never saw does not train.
    """
    rows = tx.all(
        "SELECT d.id, d.project, m.text FROM decisions AS d JOIN messages AS m ON m.id = d.message "
        "WHERE d.owner = ? AND d.state = 'COMMITTED' AND d.learned = 0 AND d.weak_label = 0 "
        "AND m.masked = 0 AND m.raw = 0 ORDER BY d.seq LIMIT ?",
        owner,
        limit,
    )
    return [(row["id"], row["project"], row["text"]) for row in rows]


def set_learned(tx: Transaction, decisions: Sequence[str], learned: bool) -> None:
    """Note which decisions the counts hold."""
    for decision in decisions:
        tx.run("UPDATE decisions SET learned = ? WHERE id = ?", int(learned), decision)


def is_learned(tx: Transaction, decision: str) -> bool:
    """Whether the counts hold this decision."""
    row = tx.one("SELECT learned FROM decisions WHERE id = ?", decision)
    return bool(row and row["learned"])


def audit(
    tx: Transaction, owner: str, actor: str, command: str, subject: str, outcome: str
) -> None:
    """One row for every mutation, in its own transaction; never any message text."""
    tx.run(
        "INSERT INTO audit (owner, actor, command, subject, outcome, at) VALUES (?, ?, ?, ?, ?, ?)",
        owner,
        actor,
        command,
        subject,
        outcome,
        tx.now,
    )
