"""How decisions, targets and projects look, as pure functions from data to `Content`.

This is the one place where text of people, models and files becomes something on the screen. It
is made safe first (`lines.plain`, `lines.one_line`) and goes into `Content`, never through markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from textual.content import Content

from isola_core.model import (
    Attribution,
    DecisionView,
    DeliveryState,
    Project,
    Stage,
    Target,
)
from isola_tui.board import Activity
from isola_tui.lines import MUTED, one_line
from isola_tui.messages import Texts

GLYPHS: Final = {
    Activity.IDLE: ("●", "$text-success"),
    Activity.WORKING: ("◐", "$text-accent"),
    Activity.NEEDS_YOU: ("◆", "$text-warning"),
    Activity.FAILED: ("✖", "$text-error"),
    Activity.UNKNOWN: ("?", "$text-warning"),
    Activity.ASLEEP: ("○", "$foreground 62%"),
}

BAR_CELLS: Final = 6
NAME_LIMIT: Final = 24


@dataclass(frozen=True)
class Presentation:
    """Draws with one language's texts, the projects' names, the keys as they are bound, and the
    length of the isolation window in milliseconds."""

    texts: Texts
    projects: Mapping[str, Project]
    keys: Mapping[str, str]
    window_ms: int
    zone: tzinfo = UTC

    # -- names, times, windows

    def name(self, project: str | None, limit: int = NAME_LIMIT) -> str:
        """A project's name for one line; its id where it is not known."""
        if project is None:
            return "?"
        known = self.projects.get(project)
        return one_line(known.name if known else project, limit) or "?"

    def aimed(self, target: Target, limit: int = NAME_LIMIT) -> str:
        """A target's name, with its lane where it has one."""
        lane = one_line(target.lane, limit)
        name = self.name(target.project, limit)
        return f"{name}/{lane}" if lane else name

    def time(self, at: int, now: int) -> str:
        """A time for a person: the clock time, with the day where it is another one."""
        when = datetime.fromtimestamp(at / 1000, self.zone)
        today = datetime.fromtimestamp(now / 1000, self.zone)
        return f"{when:%H:%M}" if when.date() == today.date() else f"{when:%m-%d %H:%M}"

    def window(self, view: DecisionView, now: int, *, bar: bool) -> Content:
        """The isolation window: a bar and the time left, or that it is held."""
        if view.held:
            return Content.styled(f"‖ {self.texts('state.held')}", "$text-warning")
        if view.deadline is None:
            return Content.empty()
        left = max(0, view.deadline - now)
        seconds = -(-left // 1000)
        time = Content.styled(f"{seconds // 60}:{seconds % 60:02}", "$text-primary")
        if not bar:
            return time
        halves = min(BAR_CELLS * 2, round(left / max(1, self.window_ms) * BAR_CELLS * 2))
        full, half = divmod(halves, 2)
        rest = BAR_CELLS - full - half
        return Content.assemble(
            ("━" * full + "╸" * half, "$primary"), ("─" * rest, "$foreground 20%"), " ", time
        )

    def decided(self, attribution: Attribution) -> str:
        """How sure who was: the person's own answer to a card has no number."""
        if attribution.target is None:
            return self.texts(f"stage.{Stage.CHOSEN}")
        return f"{attribution.confidence:.2f} {self.stage(attribution)}"

    def stage(self, attribution: Attribution) -> str:
        """Who decided, in one word: the stage, or the judge of stage 3."""
        if attribution.stage is Stage.JUDGEMENT and attribution.judge:
            return one_line(attribution.judge, 16)
        return self.texts(f"stage.{attribution.stage}")

    # -- deliveries

    def delivery(self, state: DeliveryState | None) -> Content:
        """The delivery's state with its glyph; nothing once it was answered."""
        if state is None or state is DeliveryState.ANSWERED:
            return Content.empty()
        glyph, style = {
            DeliveryState.FAILED: ("✖", "$text-error"),
            DeliveryState.UNKNOWN: ("?", "bold $text-warning"),
            DeliveryState.CANCELLED: ("■", "$text-warning"),
            DeliveryState.PENDING: ("◌", MUTED),
        }.get(state, ("◐", "$text-accent"))
        return Content.styled(f"{glyph} {self.texts(f'delivery.{state}')}", style)
