"""The panels beside the feed, and the one line that stands for them on a narrow screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from isola_core.model import DecisionView, Project
from isola_tui.board import Activity
from isola_tui.drawing.panels import Standing, decision_lines, glyph_line, project_line
from isola_tui.lines import MUTED
from isola_tui.presentation import Presentation


@dataclass
class ProjectPicked(Message):
    """Somebody clicked a project."""

    project: str


class ProjectsPanel(Widget):
    """The projects, each with a glyph that tells how it is."""

    def __init__(self) -> None:
        super().__init__(id="projects")
        self._shown: tuple[Presentation, dict[Project, Standing]] | None = None

    def show(
        self,
        presentation: Presentation,
        projects: Sequence[Project],
        activities: Mapping[str, Activity],
        unread: Mapping[str, int],
        waiting: Mapping[str, int],
        visible: str | None,
    ) -> None:
        """Draw these projects; nothing happens when they stand there already."""
        standing = {
            each: Standing(
                activities.get(each.id, Activity.ASLEEP),
                unread.get(each.id, 0),
                waiting.get(each.id, 0),
                number,
                each.id == visible,
            )
            for number, each in enumerate(projects, 1)
        }
        shown = (presentation, standing)
        if shown != self._shown:
            self._shown = shown
            self.border_title = Content(presentation.texts("projects.title"))
            self.refresh()

    def render(self) -> Content:
        """One line for each."""
        if self._shown is None:
            return Content.empty()
        presentation, projects = self._shown
        width, height = self.content_size
        if not projects:
            return Content.styled(presentation.texts("projects.empty"), MUTED)
        lines = [
            project_line(presentation, each, standing, width) for each, standing in projects.items()
        ]
        return Content("\n").join(_fitting(lines, height))

    def on_click(self, event: events.Click) -> None:
        """A project's line opens its pane."""
        offset = event.get_content_offset(self)
        projects = list(self._shown[1]) if self._shown else []
        if offset is not None and offset.y < min(len(projects), self.content_size.height):
            self.post_message(ProjectPicked(projects[offset.y].id))


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
        self._shown: tuple[Presentation, dict[str, Activity], dict[str, int], str | None] | None = (
            None
        )
        self._ends: list[tuple[int, str]] = []

    def show(
        self,
        presentation: Presentation,
        activities: Mapping[str, Activity],
        unread: Mapping[str, int],
        visible: str | None,
    ) -> None:
        """Draw these projects; without any the line is not there."""
        shown = (presentation, dict(activities), dict(unread), visible)
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
        presentation, activities, unread, visible = self._shown
        line, self._ends = glyph_line(
            presentation, activities, self.content_size.width, unread, visible
        )
        return line

    def on_click(self, event: events.Click) -> None:
        """A project's name opens its pane."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        found = next((project for end, project in self._ends if offset.x < end), None)
        if found is not None:
            self.post_message(ProjectPicked(found))


def _fitting(lines: list[Content], height: int) -> list[Content]:
    if len(lines) <= height or height < 1:
        return lines
    hidden = len(lines) - height + 1
    return [*lines[: height - 1], Content.styled(f"+{hidden}", MUTED)]
