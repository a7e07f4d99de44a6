"""Everything that is stored about one decision, read in one snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from isola_core.memory.scopes import project_read_set
from isola_core.model import DecisionView, MemoryView
from isola_core.service.settings import Core
from isola_core.store import decisions, explanations, memories, projects
from isola_core.store.explanations import Attempt, Forgetting, Write
from isola_core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Explanation:
    """One decision and all that followed from it.

    `successor` corrected this one. `memories` are ACTIVE and stand on it; of retired ones there are
    the ids only.
    """

    decision: DecisionView
    successor: str | None
    attempts: tuple[Attempt, ...]
    writes: tuple[Write, ...]
    rewinds: tuple[Forgetting, ...]
    memories: tuple[MemoryView, ...]
    retired_memories: tuple[str, ...]


async def explain(core: Core, decision: str) -> Explanation:
    """Explain a decision by its id or an unambiguous beginning of it.

    Raises:
        NotFound, Ambiguous: there is none, or several begin like that.
    """
    owner = core.owner

    def work(tx: Transaction) -> Explanation:
        view = decisions.find_decision(tx, owner.id, decision)
        project = projects.find_project(tx, owner.id, view.project) if view.project else None
        remembered: list[MemoryView] = []
        if project is not None:
            read_set = project_read_set(owner.id, owner.label, project)
            remembered = memories.memories_of_decision(tx, read_set, view.id)
        return Explanation(
            decision=view,
            successor=decisions.successor(tx, view.id),
            attempts=tuple(explanations.attempts_of(tx, view.id)),
            writes=tuple(explanations.writes_of(tx, view.id)),
            rewinds=tuple(explanations.forgettings_of(tx, view.id)),
            memories=tuple(remembered),
            retired_memories=tuple(explanations.retired_memories_of(tx, view.id)),
        )

    return await core.store.read(work)
