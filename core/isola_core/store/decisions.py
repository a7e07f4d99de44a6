"""Statements about decisions: insert, move along the transition table, read for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from isola_core.errors import Ambiguous, NotFound
from isola_core.model import (
    DECISION_TRANSITIONS,
    Attribution,
    DecisionMode,
    DecisionState,
    DecisionView,
    DeliveryState,
    RewindState,
    Target,
    check_transition,
)
from isola_core.store.conversations import message_view
from isola_core.store.transaction import Row, Transaction, marks

_VIEW: Final = """
SELECT d.id AS d_id, d.mode, d.state AS d_state, d.project, d.lane, d.previous, d.deadline, d.held,
       d.explanation, d.created AS d_created, d.updated AS d_updated,
       m.id, m.conversation, m.text, m.created, m.masked, m.parent,
       l.state AS l_state, l.error, l.failure, l.attempt, l.session, t.reply, t.ended,
       r.state AS r_state, r.note
FROM {source}
JOIN messages AS m ON m.id = d.message
LEFT JOIN deliveries AS l ON l.decision = d.id
     AND l.attempt = (SELECT max(attempt) FROM deliveries WHERE decision = d.id)
LEFT JOIN turns AS t ON t.delivery = l.id
LEFT JOIN rewinds AS r ON r.seq = (SELECT seq FROM rewinds WHERE decision = d.id
     ORDER BY state = 'PENDING' DESC, seq DESC LIMIT 1)
"""


_OPEN: Final = "state IN ('WAITING_CONFIRMATION', 'TENTATIVE')"
"""The condition of the index of open decisions, word for word: SQLite uses it only then."""

_OWNER: Final = "coalesce({}owner, '') = ?"
"""The owner as a condition that no index serves. SQLite takes `owner = ?` for selective, and reads
all of a person's decisions to find a few by id, or to sort them all for the newest ones."""


def insert_decision(
    tx: Transaction,
    owner: str,
    decision: str,
    message: str,
    state: DecisionState,
    attribution: Attribution,
    *,
    mode: DecisionMode = DecisionMode.DELEGATED,
    target: Target | None = None,
    previous: str | None = None,
    weak_label: bool = False,
) -> None:
    """A new decision with its stored explanation."""
    tx.run(
        "INSERT INTO decisions (id, owner, message, mode, state, project, lane, referenced, "
        "previous, explanation, weak_label, created, updated) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        decision,
        owner,
        message,
        mode,
        state,
        target.project if target else None,
        target.lane if target else "",
        msgspec.json.encode(attribution.referenced).decode(),
        previous,
        msgspec.json.encode(attribution).decode(),
        int(weak_label),
        tx.now,
        tx.now,
    )
    tx.changed("decision", decision)


def move_decision(
    tx: Transaction,
    view: DecisionView,
    state: DecisionState,
    *,
    target: Target | None = None,
    weak_label: bool | None = None,
) -> None:
    """Take a decision one step along its table; the window of an ended decision is closed."""
    check_transition(DECISION_TRANSITIONS, view.state, state)
    tx.run(
        "UPDATE decisions SET state = ?, project = coalesce(?, project), lane = coalesce(?, lane), "
        "weak_label = coalesce(?, weak_label), held = 0, "
        "deadline = CASE WHEN ? = 'TENTATIVE' THEN deadline END, updated = ? WHERE id = ?",
        state,
        target.project if target else None,
        target.lane if target else None,
        None if weak_label is None else int(weak_label),
        state,
        tx.now,
        view.id,
    )
    tx.changed("decision", view.id)


def explain_decision(tx: Transaction, decision: str, attribution: Attribution) -> None:
    """Replace the stored explanation: a later stage has spoken."""
    tx.run(
        "UPDATE decisions SET explanation = ?, referenced = ?, updated = ? WHERE id = ?",
        msgspec.json.encode(attribution).decode(),
        msgspec.json.encode(attribution.referenced).decode(),
        tx.now,
        decision,
    )
    tx.changed("decision", decision)


def set_window(
    tx: Transaction, decision: str, deadline: int | None, *, held: bool, commit_now: bool = False
) -> None:
    """Set the stored deadline of the isolation window; None holds it open."""
    tx.run(
        "UPDATE decisions SET deadline = ?, held = ?, commit_now = ?, updated = ? WHERE id = ?",
        deadline,
        int(held),
        int(commit_now),
        tx.now,
        decision,
    )
    tx.changed("decision", decision)


def start_window(tx: Transaction, decision: str, length_ms: int) -> None:
    """The text was written: the window of a tentative decision that is not held begins."""
    tx.run(
        "UPDATE decisions SET deadline = CASE WHEN commit_now = 1 THEN ? ELSE ? END, updated = ? "
        "WHERE id = ? AND state = 'TENTATIVE' AND held = 0 AND deadline IS NULL",
        tx.now,
        tx.now + length_ms,
        tx.now,
        decision,
    )
    tx.changed("decision", decision)


def due_decisions(tx: Transaction, owner: str) -> list[str]:
    """Tentative decisions whose window is over and whose newest turn ended well."""
    rows = tx.all(
        "SELECT d.id FROM decisions AS d JOIN deliveries AS l ON l.decision = d.id "  # noqa: S608
        "AND l.attempt = (SELECT max(attempt) FROM deliveries WHERE decision = d.id) "
        f"WHERE d.owner = ? AND d.{_OPEN} AND d.state = 'TENTATIVE' AND d.held = 0 "
        "AND d.deadline <= ? "
        "AND l.state = 'ANSWERED' ORDER BY d.seq",
        owner,
        tx.now,
    )
    return [row["id"] for row in rows]


def next_deadline(tx: Transaction, owner: str) -> int | None:
    """The earliest end of a running window."""
    row = tx.one(
        f"SELECT min(deadline) AS deadline FROM decisions WHERE owner = ? AND {_OPEN} "  # noqa: S608
        "AND state = 'TENTATIVE' AND held = 0",
        owner,
    )
    return row["deadline"] if row else None


def find_decision(tx: Transaction, owner: str, decision: str) -> DecisionView:
    """One decision by its id or an unambiguous beginning of it.

    Raises:
        NotFound: there is none.
        Ambiguous: several ids begin like that.
    """
    wanted = decision.strip().lower()
    if not wanted:
        raise NotFound("no decision was named")
    if not wanted.startswith("d-"):
        wanted = f"d-{wanted}"
    # a half-open range, since LIKE would read _ and % as wildcards
    rows = tx.all(
        "SELECT id FROM decisions WHERE owner = ? AND id >= ? AND id < ? ORDER BY id LIMIT 5",
        owner,
        wanted,
        wanted + "\uffff",
    )
    ids = [row["id"] for row in rows]
    if wanted in ids:
        ids = [wanted]
    if not ids:
        raise NotFound(f"there is no decision {decision!r}; `isola decisions` lists them")
    if len(ids) > 1:
        raise Ambiguous(
            f"{decision!r} fits several decisions: {', '.join(ids)}; write more of the id",
            candidates=ids,
        )
    return decision_views(tx, owner, ids)[0]


def decision_views(tx: Transaction, owner: str, ids: Sequence[str]) -> list[DecisionView]:
    """These decisions, in the order of the ids; unknown ones are left out."""
    if not ids:
        return []
    rows = tx.all(
        _VIEW.format(source="decisions AS d")
        + f" WHERE {_OWNER.format('d.')} AND d.id IN ({marks(ids)})",
        owner,
        *ids,
    )
    found = {row["d_id"]: _view(row) for row in rows}
    return [found[each] for each in ids if each in found]


def latest_decisions(
    tx: Transaction,
    owner: str,
    *,
    limit: int,
    states: Sequence[DecisionState] = (),
    project: str | None = None,
    conversation: str | None = None,
    before: str | None = None,
) -> list[DecisionView]:
    """The newest decisions (older than `before`, if that is given), oldest of them first."""
    newest_of_all = not states and project is None and conversation is None
    where = [_OWNER.format("") if newest_of_all else "owner = ?"]
    values: list[object] = [owner]
    if states:
        if set(states) <= {DecisionState.WAITING_CONFIRMATION, DecisionState.TENTATIVE}:
            where.append(_OPEN)
        where.append(f"state IN ({marks(states)})")
        values += states
    if project is not None:
        where.append("project = ?")
        values.append(project)
    if conversation is not None:
        where.append(
            "message IN (SELECT id FROM messages "
            "WHERE owner = decisions.owner AND conversation = ?)"
        )
        values.append(conversation)
    if before is not None:
        where.append("seq < (SELECT seq FROM decisions WHERE id = ?)")
        values.append(before)
    source = f"(SELECT * FROM decisions WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?) AS d"  # noqa: S608
    rows = tx.all(_VIEW.format(source=source) + " ORDER BY d.seq", *values, limit)
    return [_view(row) for row in rows]


def find_decisions(tx: Transaction, owner: str, text: str, limit: int) -> list[DecisionView]:
    """The newest decisions whose message or reply holds `text`, newest first; case is folded."""
    pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    rows = tx.all(
        _VIEW.format(source="decisions AS d")
        + " WHERE d.owner = ? AND (m.text LIKE ? ESCAPE '\\' OR t.reply LIKE ? ESCAPE '\\') "
        "ORDER BY d.seq DESC LIMIT ?",
        owner,
        pattern,
        pattern,
        limit,
    )
    return [_view(row) for row in rows]


def decisions_of_message(tx: Transaction, owner: str, message: str) -> list[DecisionView]:
    """Every decision about one message and its children, oldest first."""
    rows = tx.all(
        _VIEW.format(source="decisions AS d")
        + " WHERE d.owner = ? AND (m.id = ? OR m.parent = ?) ORDER BY d.seq",
        owner,
        message,
        message,
    )
    return [_view(row) for row in rows]


def successor(tx: Transaction, decision: str) -> str | None:
    """The decision that corrected this one."""
    row = tx.one("SELECT id FROM decisions WHERE previous = ? ORDER BY seq DESC", decision)
    return row["id"] if row else None


def _view(row: Row) -> DecisionView:
    return DecisionView(
        id=row["d_id"],
        message=message_view(row),
        mode=DecisionMode(row["mode"]),
        state=DecisionState(row["d_state"]),
        project=row["project"],
        lane=row["lane"],
        created=row["d_created"],
        updated=row["d_updated"],
        deadline=row["deadline"],
        held=bool(row["held"]),
        previous=row["previous"],
        attribution=msgspec.json.decode(row["explanation"], type=Attribution),
        delivery=DeliveryState(row["l_state"]) if row["l_state"] else None,
        delivery_error=row["error"] or "",
        failure=row["failure"] or "",
        attempt=row["attempt"] or 0,
        reply=row["reply"] or "",
        replied=row["ended"],
        rewind=RewindState(row["r_state"]) if row["r_state"] else None,
        rewind_note=row["note"] or "",
        session=row["session"],
    )
