"""Where the text in the entry will go: what attribution says, or what the person chose by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from isola_core.model import Attribution, Stage, Target

CLEARLY_BETTER: Final = 0.15
"""By so much another project must fit better before a proposed target changes while typing."""

STILL_PROPOSED: Final = 0.6
"""A proposed target that has sunk to this is given up: then a card will ask."""


@dataclass(frozen=True, slots=True)
class Aim:
    """One moment of the target line.

    `attribution` is what was computed for `text` (None for a blank one); `chosen` is the person's
    own pick for this message, which further typing does not change; `locked` is where everything
    goes until it is released. `targets` are those that the text names with `@`. `raw`: the text
    goes to the session as it is. `ahead` says how much the target's session has before it.
    `partial`: only the beginning of a very long text was read so far.
    """

    text: str = ""
    attribution: Attribution | None = None
    chosen: Target | None = None
    partial: bool = False
    locked: Target | None = None
    targets: tuple[Target, ...] = ()
    raw: bool = False
    ahead: int = 0

    @property
    def by_hand(self) -> tuple[Target, ...]:
        """Where the person said that it goes: a pick for this message, then `@`, then the lock."""
        if self.chosen is not None:
            return (self.chosen,)
        if self.targets:
            return self.targets
        return (self.locked,) if self.locked is not None else ()

    @property
    def target(self) -> Target | None:
        """Where Enter sends the text, None where a card will ask or several are named."""
        if self.by_hand:
            return self.by_hand[0] if len(self.by_hand) == 1 else None
        if self.raw:
            return None
        return self.attribution.target if self.attribution else None

    @property
    def uses_lock(self) -> bool:
        """Whether the lock decides, and no pick or `@` stands before it."""
        return self.locked is not None and self.chosen is None and not self.targets

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


def steady(shown: Attribution | None, now: Attribution | None) -> Attribution | None:
    """`now`, or the target that is shown already while `now` is no clearly better proposal.

    Only one proposal of the judge gives way to another: what a rule, a name or an `@` says shows at
    once, and goes at once when it no longer stands in the text.
    """
    if shown is None or now is None or not (_proposal(shown) and _proposal(now)):
        return now
    target = shown.target
    if target is None or now.target == target:
        return now
    kept = next((each for each in now.candidates if each.project == target.project), None)
    if kept is None or kept.confidence < STILL_PROPOSED:
        return now
    best = max(each.confidence for each in now.candidates)
    if best - kept.confidence >= CLEARLY_BETTER:
        return now
    return replace(now, target=target, confidence=kept.confidence, reason=kept.reason)


def _proposal(attribution: Attribution) -> bool:
    return attribution.stage is Stage.JUDGEMENT and not attribution.automatic
