"""Statements that page through decisions, for screens that show a stretch of a long history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isola_core.model import DecisionView, Target
from isola_core.store.decisions import decision_views
from isola_core.store.transaction import Transaction, marks


@dataclass(frozen=True, slots=True)
class Moves:
    """Which projects corrected decisions came from and went to, by the decision's id."""

    came_from: Mapping[str, str] = field(default_factory=dict)
    went_to: Mapping[str, str] = field(default_factory=dict)


def page(
    tx: Transaction,
    owner: str,
    limit: int,
    *,
    target: Target | None = None,
    before: str | None = None,
    after: str | None = None,
) -> list[DecisionView]:
    """Up to `limit` decisions, oldest first: the newest ones, or those next to a decision.

    `target` leaves only one project's lane. `before` wants those just older than that decision,
    `after` those just newer.
    """
    # without a target no index serves the order; SQLite walks back from the newest row then
    where = ["owner = ?" if target is not None else "coalesce(owner, '') = ?"]
    values: list[object] = [owner]
    if target is not None:
        where.append("project = ? AND lane = ?")
        values += [target.project, target.lane]
    for bound, compared in ((before, "<"), (after, ">")):
        if bound is not None:
            where.append(f"seq {compared} (SELECT seq FROM decisions WHERE id = ?)")  # noqa: S608
            values.append(bound)
    order = "ASC" if after is not None else "DESC"
    rows = tx.all(
        f"SELECT id FROM decisions WHERE {' AND '.join(where)} ORDER BY seq {order} LIMIT ?",  # noqa: S608
        *values,
        limit,
    )
    ids = [row["id"] for row in rows]
    return decision_views(tx, owner, ids if after is not None else ids[::-1])


def moves(tx: Transaction, owner: str, ids: Sequence[str]) -> Moves:
    """Where these decisions came from and went to by correction."""
    went_to = tx.all(
        f"SELECT previous, project FROM decisions WHERE owner = ? AND previous IN ({marks(ids)})",  # noqa: S608
        owner,
        *ids,
    )
    came_from = tx.all(
        "SELECT d.id, p.project FROM decisions AS d JOIN decisions AS p ON p.id = d.previous "  # noqa: S608
        f"WHERE d.owner = ? AND d.id IN ({marks(ids)})",
        owner,
        *ids,
    )
    return Moves(
        {row["id"]: row["project"] for row in came_from if row["project"]},
        {row["previous"]: row["project"] for row in went_to if row["project"]},
    )
