"""What screens may watch while turns run. It is kept in memory only; the store has the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from isola_core.ports import Question, SessionRef, TurnEvent, TurnEventKind

PARTIAL_LIMIT: Final = 200_000
"""Characters of a reply in progress that are kept."""


@dataclass(slots=True)
class Live:
    """What screens may watch while turns run; kept in memory only."""

    partial: dict[str, str] = field(default_factory=dict)
    """decision id -> reply so far"""
    status: dict[str, str] = field(default_factory=dict)
    """decision id -> what the agent is doing"""
    questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)
    """session id -> open questions"""
    sessions: dict[str, SessionRef] = field(default_factory=dict)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def hear(self, decision: str, event: TurnEvent) -> None:
        """Keep what happens inside a turn."""
        if event.kind is TurnEventKind.TEXT:
            so_far = self.partial.get(decision, "")
            self.partial[decision] = (so_far + event.text)[-PARTIAL_LIMIT:]
        else:
            self.status[decision] = event.text[:200]
        self.changed()

    def changed(self) -> None:
        """Tell every listener; a broken one harms nobody."""
        for listener in list(self.listeners):
            with contextlib.suppress(Exception):
                listener()
