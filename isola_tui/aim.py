"""Where the text in the entry will go: what attribution says, or what the person chose by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isola_core.model import Attribution, Target


@dataclass(frozen=True, slots=True)
class Aim:
    """One moment of the target line.

    `attribution` is what was computed for `text` (None for a blank one); `chosen` is the person's
    own pick, which further typing does not change. `partial`: only the beginning of a very long
    text was read so far.
    """

    text: str = ""
    attribution: Attribution | None = None
    chosen: Target | None = None
    partial: bool = False

    @property
    def target(self) -> Target | None:
        """Where Enter sends the text, None where a card will ask."""
        if self.chosen is not None:
            return self.chosen
        return self.attribution.target if self.attribution else None

    def order(self, projects: Sequence[str]) -> list[str]:
        """The projects as the target key walks through them: candidates first, best first."""
        found: dict[str, None] = {}
        if self.attribution is not None:
            if self.attribution.target is not None:
                found[self.attribution.target.project] = None
            found |= dict.fromkeys(each.project for each in self.attribution.candidates)
        found |= dict.fromkeys(projects)
        known = set(projects)
        return [each for each in found if each in known]

    def stepped(self, step: int, projects: Sequence[str]) -> Target | None:
        """The pick after (`step` 1) or before (-1) what stands there now; None without projects."""
        order = self.order(projects)
        if not order:
            return None
        if self.target is None or self.target.project not in order:
            return Target(order[0 if step > 0 else -1])
        return Target(order[(order.index(self.target.project) + step) % len(order)])
