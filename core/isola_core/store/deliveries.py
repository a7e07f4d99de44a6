"""Statements about what is on its way: deliveries, turns, rewinds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from isola_core.errors import Conflict
from isola_core.model import (
    DELIVERY_TRANSITIONS,
    REWIND_TRANSITIONS,
    DeliveryState,
    RewindState,
    check_transition,
)
from isola_core.ports import PastTurn, QuotedContext
from isola_core.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt as the dispatcher sees it; `text` is the message's stored text."""

    id: str
    decision: str
    message: str
    session: str
    attempt: int
    state: DeliveryState
    generation: int | None
    fence: int | None
    interrupt: bool
    written: int | None
    text: str
    masked: bool
    raw: bool
    project: str


@dataclass(frozen=True, slots=True)
class Rewind:
    """One turn that a session must forget."""

    id: str
    decision: str
    session: str
    delivery: str
    generation: int | None
    turn_id: str
    text: str
    context: QuotedContext
    attempts: int
    held: bool = True
    """Whether the session got the turn itself; else it was only told of it."""


_DELIVERY = (
    "SELECT l.*, d.message, d.project, m.text, m.masked, m.raw FROM deliveries AS l "
    "JOIN decisions AS d ON d.id = l.decision JOIN messages AS m ON m.id = d.message "
)


def insert_delivery(
    tx: Transaction,
    delivery: str,
    decision: str,
    session_id: str,
    attempt: int,
    *,
    urgent: bool = False,
) -> None:
    """Put one attempt into the outbox; an urgent one goes before what waits there."""
    tx.run(
        "INSERT INTO deliveries (id, decision, session, attempt, state, urgent, created, updated) "
        "VALUES (?, ?, ?, ?, 'PENDING', ?, ?, ?)",
        delivery,
        decision,
        session_id,
        attempt,
        int(urgent),
        tx.now,
        tx.now,
    )
    tx.changed("delivery", delivery)


def delivery_by_id(tx: Transaction, delivery: str) -> Delivery:
    """One attempt that is known to exist."""
    row = tx.one(_DELIVERY + "WHERE l.id = ?", delivery)
    assert row is not None, delivery
    return _delivery(row)


def newest_delivery(tx: Transaction, decision: str) -> Delivery | None:
    """The last attempt of a decision."""
    row = tx.one(_DELIVERY + "WHERE l.decision = ? ORDER BY l.attempt DESC LIMIT 1", decision)
    return _delivery(row) if row else None


def deliveries_of(tx: Transaction, decision: str) -> list[Delivery]:
    """Every attempt of a decision, oldest first."""
    rows = tx.all(_DELIVERY + "WHERE l.decision = ? ORDER BY l.attempt", decision)
    return [_delivery(row) for row in rows]


def open_deliveries(tx: Transaction, session_id: str) -> list[Delivery]:
    """Attempts of a session that are waiting, on their way or unknown, in order."""
    rows = tx.all(
        _DELIVERY + "WHERE l.session = ? "
        "AND l.state IN ('PENDING', 'RUNNING', 'WRITTEN', 'RECEIVED', 'UNKNOWN') "
        "ORDER BY l.urgent DESC, d.seq",
        session_id,
    )
    return [_delivery(row) for row in rows]


def move_delivery(
    tx: Transaction,
    delivery: Delivery,
    state: DeliveryState,
    *,
    fence: int | None = None,
    generation: int | None = None,
    sent_hash: str | None = None,
    proof: str | None = None,
    error: str | None = None,
    failure: str | None = None,
    unwritten: bool = False,
) -> None:
    """Take an attempt one step along its table.

    Raises:
        Conflict: the row changed since `delivery` was read (another process took over).
    """
    check_transition(DELIVERY_TRANSITIONS, delivery.state, state)
    written = state is DeliveryState.WRITTEN
    changed = tx.run(
        "UPDATE deliveries SET state = ?, fence = coalesce(?, fence), "
        "generation = coalesce(?, generation), sent_hash = coalesce(?, sent_hash), "
        "proof = coalesce(?, proof), error = coalesce(?, error), failure = coalesce(?, failure), "
        "written = CASE WHEN ? THEN ? WHEN ? THEN NULL ELSE written END, updated = ? "
        "WHERE id = ? AND state = ? AND fence IS ?",
        state,
        fence,
        generation,
        sent_hash,
        proof,
        error,
        failure,
        int(written),
        tx.now,
        int(unwritten),
        tx.now,
        delivery.id,
        delivery.state,
        delivery.fence,
    )
    if not changed:
        raise Conflict(f"delivery {delivery.id} is no longer {delivery.state}")
    if state in (DeliveryState.FAILED, DeliveryState.CANCELLED, DeliveryState.UNKNOWN):
        # it does not commit by itself, so no time runs out
        tx.run(
            "UPDATE decisions SET deadline = NULL WHERE id = ? AND state = 'TENTATIVE'",
            delivery.decision,
        )
    tx.changed("delivery", delivery.id)
    tx.changed("decision", delivery.decision)


def request_interrupt(tx: Transaction, delivery: Delivery) -> None:
    """Ask whoever drives the session to end this turn."""
    tx.run("UPDATE deliveries SET interrupt = 1, updated = ? WHERE id = ?", tx.now, delivery.id)
    tx.changed("interrupt", delivery.id)


def _delivery(row: Row) -> Delivery:
    return Delivery(
        id=row["id"],
        decision=row["decision"],
        message=row["message"],
        session=row["session"],
        attempt=row["attempt"],
        state=DeliveryState(row["state"]),
        generation=row["generation"],
        fence=row["fence"],
        interrupt=bool(row["interrupt"]),
        written=row["written"],
        text=row["text"],
        masked=bool(row["masked"]),
        raw=bool(row["raw"]),
        project=row["project"],
    )


def insert_turn(
    tx: Transaction,
    delivery: Delivery,
    generation: int,
    turn_id: str,
    reply: str,
    context: QuotedContext,
    meta: str,
    started: int,
) -> None:
    """Keep a turn that ended; proof that comes later replaces what was kept of it."""
    tx.run(
        "INSERT INTO turns (delivery, session, generation, turn_id, reply, context, meta, started, "
        "ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (delivery) DO UPDATE SET "
        "turn_id = excluded.turn_id, reply = excluded.reply, excised = 0, ended = excluded.ended",
        delivery.id,
        delivery.session,
        generation,
        turn_id,
        reply,
        msgspec.json.encode(context).decode(),
        meta,
        started,
        tx.now,
    )


def excise_turn(tx: Transaction, delivery: str) -> None:
    """Keep a turn out of the session's history."""
    tx.run("UPDATE turns SET excised = 1 WHERE delivery = ?", delivery)


def restore_turn(tx: Transaction, delivery: str) -> None:
    """Take a turn into the session's history after all."""
    tx.run("UPDATE turns SET excised = 0 WHERE delivery = ?", delivery)


def drop_rewind(tx: Transaction, delivery: str) -> None:
    """The interrupted turn left no trace in the session: there is nothing to forget."""
    tx.run(
        "DELETE FROM rewinds WHERE delivery = ? AND state = 'PENDING' "
        "AND session = (SELECT session FROM deliveries WHERE id = ?)",
        delivery,
        delivery,
    )


def quoting_sessions(tx: Transaction, owner: str, project: str, ids: Collection[str]) -> list[str]:
    """Sessions of a project that were told, in their current generation, what these ids name."""
    rows = tx.all(
        "SELECT id, generation FROM sessions WHERE owner = ? AND project = ? ORDER BY created, id",
        owner,
        project,
    )
    return [row["id"] for row in rows if is_quoted(tx, row["id"], row["generation"], ids)]


def is_quoted(tx: Transaction, session_id: str, generation: int, ids: Collection[str]) -> bool:
    """Whether turns that this generation still holds were told what these ids name."""
    rows = tx.all(
        "SELECT t.context FROM turns AS t WHERE t.session = ? AND t.generation = ? "
        "AND NOT EXISTS (SELECT 1 FROM rewinds AS r WHERE r.delivery = t.delivery "
        "AND r.session = t.session AND r.state = 'DONE')",
        session_id,
        generation,
    )
    return any(not quoted.isdisjoint(ids) for quoted in (set(_context(r).sources) for r in rows))


def was_briefed(tx: Transaction, session_id: str, generation: int) -> bool | None:
    """Whether this generation was told a briefing; None: nothing was said in it."""
    rows = tx.all(
        "SELECT context FROM turns WHERE session = ? AND generation = ?", session_id, generation
    )
    return any(_context(row).briefing for row in rows) if rows else None


def is_remembered_text(tx: Transaction, message: str) -> bool:
    """Whether some session may hold this message's text and has not been made to forget it."""
    return bool(
        tx.one(
            "SELECT 1 AS found FROM deliveries AS l JOIN decisions AS d ON d.id = l.decision "
            "WHERE d.message = ? AND l.written IS NOT NULL AND NOT EXISTS (SELECT 1 FROM rewinds "
            "AS r WHERE r.delivery = l.id AND r.session = l.session AND r.state != 'PENDING')",
            message,
        )
    )


def past_turns(tx: Transaction, session_id: str, generation: int) -> list[PastTurn]:
    """A session's finished turns of one generation without the excised ones, oldest first."""
    rows = tx.all(
        "SELECT t.delivery, l.decision, m.text, t.reply, t.started FROM turns AS t "
        "JOIN deliveries AS l ON l.id = t.delivery JOIN decisions AS d ON d.id = l.decision "
        "JOIN messages AS m ON m.id = d.message "
        "WHERE t.session = ? AND t.generation = ? AND t.excised = 0 ORDER BY t.seq",
        session_id,
        generation,
    )
    return [
        PastTurn(row["delivery"], row["text"], row["reply"], row["started"], row["decision"])
        for row in rows
    ]


def insert_rewind(
    tx: Transaction, rewind: str, delivery: Delivery, session_id: str | None = None
) -> None:
    """The session of this delivery, or one that quoted it, must forget it; once each."""
    tx.run(
        "INSERT OR IGNORE INTO rewinds (id, decision, session, delivery, state, created, updated) "
        "VALUES (?, ?, ?, ?, 'PENDING', ?, ?)",
        rewind,
        delivery.decision,
        session_id or delivery.session,
        delivery.id,
        tx.now,
        tx.now,
    )
    excise_turn(tx, delivery.id)
    tx.changed("rewind", session_id or delivery.session)


def pending_rewinds(tx: Transaction, session_id: str) -> list[Rewind]:
    """Turns that the session must forget before anything else is delivered to it."""
    rows = tx.all(
        "SELECT r.id, r.decision, r.session, r.delivery, r.attempts, l.generation, t.turn_id, "
        "l.session = r.session AS held, t.context, m.text FROM rewinds AS r "
        "JOIN deliveries AS l ON l.id = r.delivery "
        "JOIN decisions AS d ON d.id = r.decision JOIN messages AS m ON m.id = d.message "
        "LEFT JOIN turns AS t ON t.delivery = l.id "
        "WHERE r.session = ? AND r.state = 'PENDING' ORDER BY r.seq",
        session_id,
    )
    return [
        Rewind(
            id=row["id"],
            decision=row["decision"],
            session=row["session"],
            delivery=row["delivery"],
            generation=row["generation"],
            turn_id=row["turn_id"] or "",
            text=row["text"],
            context=_context(row),
            attempts=row["attempts"],
            held=bool(row["held"]),
        )
        for row in rows
    ]


def _context(row: Row) -> QuotedContext:
    found = row["context"]
    return msgspec.json.decode(found, type=QuotedContext) if found else QuotedContext()


def move_rewind(tx: Transaction, rewind: Rewind, state: RewindState, note: str) -> None:
    """The session has forgotten the turn."""
    check_transition(REWIND_TRANSITIONS, RewindState.PENDING, state)
    tx.run(
        "UPDATE rewinds SET state = ?, note = ?, updated = ? WHERE id = ? AND state = 'PENDING'",
        state,
        note,
        tx.now,
        rewind.id,
    )
    tx.changed("decision", rewind.decision)
    tx.changed("rewind", rewind.session)


def count_rewind_attempt(tx: Transaction, rewind: Rewind, note: str) -> None:
    """A rewind failed this time; it stays pending."""
    tx.run(
        "UPDATE rewinds SET attempts = attempts + 1, note = ?, updated = ? WHERE id = ?",
        note,
        tx.now,
        rewind.id,
    )
    tx.changed("decision", rewind.decision)
