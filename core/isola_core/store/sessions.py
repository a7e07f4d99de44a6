"""Statements about sessions and their leases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isola_core.ports import ProcessIdentity, SessionRef
from isola_core.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session row: the reference for the harness, the harness's name, and a waiting briefing."""

    ref: SessionRef
    harness: str
    briefing: str


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives a session; `fence` grows with every holder."""

    session: str
    holder: ProcessIdentity
    heartbeat: int
    fence: int
    released: bool


def session_key(project: str, lane: str) -> str:
    """`proj:<id>` or `proj:<id>:<lane>`."""
    return f"proj:{project}:{lane}" if lane else f"proj:{project}"


def find_session(
    tx: Transaction, owner: str, machine: str, project: str, lane: str
) -> StoredSession | None:
    """The session of one project and lane on this machine."""
    row = tx.one(
        "SELECT * FROM sessions WHERE owner = ? AND machine = ? AND project = ? AND lane = ?",
        owner,
        machine,
        project,
        lane,
    )
    return _session(row) if row else None


def session(tx: Transaction, session_id: str) -> StoredSession:
    """One session that is known to exist."""
    row = tx.one("SELECT * FROM sessions WHERE id = ?", session_id)
    assert row is not None, session_id
    return _session(row)


def list_sessions(tx: Transaction, owner: str, machine: str) -> list[StoredSession]:
    """Every session of this person on this machine."""
    rows = tx.all(
        "SELECT * FROM sessions WHERE owner = ? AND machine = ? ORDER BY created, id",
        owner,
        machine,
    )
    return [_session(row) for row in rows]


def insert_session(
    tx: Transaction,
    owner: str,
    machine: str,
    session_id: str,
    project: str,
    lane: str,
    harness: str,
    cwd: str | None,
) -> None:
    """A project's first message creates its session."""
    tx.run(
        "INSERT INTO sessions (id, owner, machine, project, lane, harness, cwd, created, updated) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        session_id,
        owner,
        machine,
        project,
        lane,
        harness,
        cwd,
        tx.now,
        tx.now,
    )


def update_session(tx: Transaction, ref: SessionRef, *, briefing: str | None = None) -> None:
    """Store the reference that a harness gave back, and what a fresh history must be told.

    Nothing changes where the session has a newer generation by now: `ref` is history.
    """
    tx.run(
        "UPDATE sessions SET generation = ?, backend_id = ?, account = ?, "
        "briefing = coalesce(?, briefing), updated = ? WHERE id = ? AND generation <= ?",
        ref.generation,
        ref.backend_id,
        ref.account,
        briefing,
        tx.now,
        ref.id,
        ref.generation,
    )
    tx.changed("session", ref.id)


def retarget_session(tx: Transaction, session_id: str, harness: str, cwd: str | None) -> None:
    """The project moved or got another backend: the next turn starts a fresh history there."""
    tx.run(
        "UPDATE sessions SET harness = ?, cwd = ?, generation = generation + 1, backend_id = NULL, "
        "updated = ? WHERE id = ?",
        harness,
        cwd,
        tx.now,
        session_id,
    )
    tx.changed("session", session_id)


def _session(row: Row) -> StoredSession:
    ref = SessionRef(
        id=row["id"],
        project=row["project"],
        key=session_key(row["project"], row["lane"]),
        generation=row["generation"],
        lane=row["lane"],
        backend_id=row["backend_id"],
        cwd=Path(row["cwd"]) if row["cwd"] else None,
        account=row["account"],
    )
    return StoredSession(ref, row["harness"], row["briefing"])


def lease(tx: Transaction, session_id: str) -> Lease | None:
    """The session's newest lease, released or not."""
    row = tx.one("SELECT * FROM leases WHERE session = ?", session_id)
    if row is None:
        return None
    holder = ProcessIdentity(row["machine"], row["boot"], row["pid"], row["started"])
    return Lease(session_id, holder, row["heartbeat"], row["fence"], bool(row["released"]))


def take_lease(tx: Transaction, session_id: str, holder: ProcessIdentity) -> int:
    """Become the session's driver; the new fencing token. The caller has checked that it may."""
    tx.run(
        "INSERT INTO leases (session, machine, boot, pid, started, heartbeat, fence) "
        "VALUES (?, ?, ?, ?, ?, ?, 1) ON CONFLICT (session) DO UPDATE SET "
        "machine = excluded.machine, boot = excluded.boot, pid = excluded.pid, "
        "started = excluded.started, heartbeat = excluded.heartbeat, fence = fence + 1, "
        "released = 0",
        session_id,
        holder.machine,
        holder.boot,
        holder.pid,
        holder.started,
        tx.now,
    )
    row = tx.one("SELECT fence FROM leases WHERE session = ?", session_id)
    assert row is not None
    tx.changed("lease", session_id)
    return int(row["fence"])


def beat(tx: Transaction, session_id: str, fence: int) -> bool:
    """Still here. False: somebody else has taken over."""
    return bool(
        tx.run(
            "UPDATE leases SET heartbeat = ? WHERE session = ? AND fence = ? AND released = 0",
            tx.now,
            session_id,
            fence,
        )
    )


def release_lease(tx: Transaction, session_id: str, fence: int) -> None:
    """Let another process drive the session."""
    tx.run("UPDATE leases SET released = 1 WHERE session = ? AND fence = ?", session_id, fence)
    tx.changed("lease", session_id)


def sessions_with_work(tx: Transaction, owner: str, machine: str) -> dict[str, str]:
    """Sessions with a waiting or live delivery or a pending rewind, and a mark of which work it is.

    The mark changes when something new is asked for, so that work which could not be done is not
    tried over and over.
    """
    rows = tx.all(
        "SELECT s.id, (SELECT max(l.seq) FROM deliveries AS l WHERE l.session = s.id "
        # the condition of the index of open deliveries, word for word: SQLite uses it only then
        "AND l.state IN ('PENDING', 'RUNNING', 'WRITTEN', 'RECEIVED', 'UNKNOWN') "
        "AND l.state <> 'UNKNOWN') AS delivery, "
        "(SELECT max(r.seq) FROM rewinds AS r WHERE r.session = s.id AND r.state = 'PENDING') "
        "AS rewind FROM sessions AS s WHERE s.owner = ? AND s.machine = ? ORDER BY s.created, s.id",
        owner,
        machine,
    )
    return {
        row["id"]: f"{row['delivery']}/{row['rewind']}"
        for row in rows
        if row["delivery"] is not None or row["rewind"] is not None
    }
