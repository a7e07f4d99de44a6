"""What attribution keeps in memory: projects, learned counts, and a conversation's past.

Another process may register a project at any time, so every transaction that attributes compares
the projects' version number first. Counts may lag behind for a moment: they only propose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.words import WordCounts
from isola_core.model import Project
from isola_core.service.settings import Core
from isola_core.store import conversations, memories, projects
from isola_core.store.transaction import Transaction

RECENT: Final = 6
"""How many of a conversation's attributed messages a judge sees."""


@dataclass(frozen=True, slots=True)
class RoutingState:
    """One immutable snapshot; two threads may read it."""

    projects_version: int = -1
    judge_version: int = -1
    projects: tuple[Project, ...] = ()
    counts: Mapping[str, WordCounts] = field(default_factory=dict)

    def project(self, project: str) -> Project | None:
        """A project that messages may go to, by id."""
        return next((each for each in self.projects if each.id == project), None)


def refreshed(
    tx: Transaction, owner: str, state: RoutingState, *, counts: bool = False
) -> RoutingState:
    """`state`, or a new one where the store is newer; learned counts only when asked for."""
    rows = tx.all("SELECT key, value FROM meta WHERE key IN ('projects_version', 'judge_version')")
    versions = {row["key"]: int(row["value"]) for row in rows}
    projects_version = versions.get("projects_version", 0)
    if projects_version != state.projects_version:
        state = replace(
            state,
            projects_version=projects_version,
            projects=tuple(projects.list_projects(tx, owner)),
        )
    judge_version = versions.get("judge_version", 0)
    if counts and judge_version != state.judge_version:
        blobs = memories.judge_blobs(tx, owner)
        state = replace(
            state,
            judge_version=judge_version,
            counts={project: WordCounts.unpack(blob) for project, blob in blobs.items()},
        )
    return state


def routing_context(
    tx: Transaction,
    core: Core,
    state: RoutingState,
    conversation: str,
    asking: tuple[str, ...] = (),
    visible: str | None = None,
) -> RoutingContext:
    """What the pipeline needs to know about this conversation now."""
    last = conversations.inertia(tx, core.owner.id, conversation)
    current = None
    if last is not None and tx.now - last[1] < core.settings.inertia_ms:
        current = last[0] if state.project(last[0]) else None
    recent = conversations.recent_attributed(tx, core.owner.id, conversation, RECENT)
    return RoutingContext(
        projects=state.projects,
        current=current,
        recent=tuple(recent),
        counts=state.counts,
        asking=asking,
        visible=visible,
        auto_at=core.settings.auto_at,
    )
