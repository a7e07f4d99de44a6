"""The panels beside the feed, and the one line that stands for them on a narrow screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from isola_core.model import DecisionView, Project
from isola_tui.board import Activity
from isola_tui.drawing.panels import decision_lines, glyph_line, project_line
from isola_tui.lines import MUTED
from isola_tui.presentation import Presentation


class ProjectsPanel(Widget):
    """The projects, each with a glyph that tells how it is."""

    def __init__(self) -> None:
        super().__init__(id="projects")
        self._shown: tuple[Presentation, Sequence[Project], Mapping[str, Activity]] | None = None

    def show(
        self,
        presentation: Presentation,
        projects: Sequence[Project],
        activities: Mapping[str, Activity],
    ) -> None:
        """Draw these projects; nothing happens when they stand there already."""
        shown = (presentation, tuple(projects), dict(activities))
        if shown != self._shown:
            self._shown = shown
            self.border_title = Content(presentation.texts("projects.title"))
            self.refresh()

    def render(self) -> Content:
        """One line for each."""
        if self._shown is None:
            return Content.empty()
        presentation, projects, activities = self._shown
        width, height = self.content_size
        if not projects:
            return Content.styled(presentation.texts("projects.empty"), MUTED)
        lines = [
            project_line(presentation, each, activities.get(each.id, Activity.ASLEEP), width)
            for each in projects
        ]
        return Content("\n").join(_fitting(lines, height))


class DecisionsPanel(Widget):
    """The newest decisions, newest first, with their windows."""

    def __init__(self) -> None:
        super().__init__(id="decisions")
        self._shown: tuple[Presentation, tuple[DecisionView, ...], int] | None = None

    def show(self, presentation: Presentation, views: Sequence[DecisionView], now: int) -> None:
        """Draw these; `now` is 0 where no window counts down."""
        shown = (presentation, tuple(views), now)
        if shown != self._shown:
            self._shown = shown
            self.border_title = Content(presentation.texts("decisions.title"))
            self.refresh()

    def render(self) -> Content:
        """Newest first, as many as fit."""
        if self._shown is None:
            return Content.empty()
        presentation, views, now = self._shown
        width, height = self.content_size
        if not views:
            return Content.styled(presentation.texts("decisions.empty"), MUTED)
        lines: list[Content] = []
        for view in reversed(views):
            lines += decision_lines(presentation, view, width, now)
            if len(lines) >= height:
                break
        return Content("\n").join(lines[:height])


class ProjectsLine(Widget):
    """On a narrow screen: all projects as one line of glyphs."""

    def __init__(self) -> None:
        super().__init__(id="projects-line")
        self._shown: tuple[Presentation, Mapping[str, Activity]] | None = None

    def show(self, presentation: Presentation, activities: Mapping[str, Activity]) -> None:
        """Draw these projects; without any the line is not there."""
        shown = (presentation, dict(activities))
        if shown != self._shown:
            self._shown = shown
            self.set_class(not activities, "-empty")
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row."""
        return 1

    def render(self) -> Content:
        """The line, cut where it must be."""
        if self._shown is None:
            return Content.empty()
        presentation, activities = self._shown
        return glyph_line(presentation, activities, self.content_size.width)


def _fitting(lines: list[Content], height: int) -> list[Content]:
    if len(lines) <= height or height < 1:
        return lines
    hidden = len(lines) - height + 1
    return [*lines[: height - 1], Content.styled(f"+{hidden}", MUTED)]
