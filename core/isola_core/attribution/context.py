"""What attribution may know about one moment of one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isola_core.attribution.words import WordCounts
from isola_core.model import Project, Target


@dataclass(frozen=True, slots=True)
class RoutingContext:
    """One moment of one conversation. Nothing in it changes while it is used.

    `projects` holds no retired ones; unlisted ones can be addressed by name, but are never
    candidates. `current` is the conversation's last project, already faded by age. `recent` holds
    (project id, text) pairs, oldest first. `counts` are the words of each project's attributed
    messages. `asking` lists projects whose agent waits for an answer, `visible` the project whose
    pane is in view. `auto_at` is the confidence from which a judge decides without asking.
    """

    projects: tuple[Project, ...]
    current: str | None = None
    recent: tuple[tuple[str, str], ...] = ()
    counts: Mapping[str, WordCounts] = field(default_factory=dict)
    asking: tuple[str, ...] = ()
    visible: str | None = None
    auto_at: float = 0.95


@dataclass(frozen=True, slots=True)
class Addressed:
    """The targets that a text names with `@`, in order, and the text that is to be delivered.

    Without targets the text is to be attributed; only escapes (`\\@name`, `@@name`) are resolved in
    it. With targets the text may be blank (`@billing` alone).
    """

    targets: tuple[Target, ...]
    text: str
