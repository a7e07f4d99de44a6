"""What stands beside the feed: decisions with their windows, projects with their glyphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from textual.content import Content

from isola_core.model import DecisionState, DecisionView, Project
from isola_tui.board import Activity
from isola_tui.drawing.panes import unread
from isola_tui.lines import MUTED, muted, one_line, row
from isola_tui.presentation import GLYPHS, Presentation


def decision_lines(draw: Presentation, view: DecisionView, width: int, now: int) -> list[Content]:
    """A decision in the side panel: where, and how it stands."""
    if view.state is DecisionState.WAITING_CONFIRMATION:
        names = " | ".join(draw.name(each.project, 12) for each in view.attribution.candidates[:3])
        left = Content.assemble(("? ", "bold $text-warning"), (names or "…", "$text-warning"))
        return [left.truncate(width, ellipsis=True), _excerpt(draw, view, width)]
    glyph, style = {
        DecisionState.COMMITTED: ("✓", "$text-success"),
        DecisionState.CORRECTED: ("↷", "$text-warning"),
        DecisionState.WITHDRAWN: ("↶", MUTED),
    }.get(view.state, ("▸", "$text-primary"))
    ended = view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)
    name = Content.styled(draw.name(view.project), MUTED if ended else "bold")
    head = Content.assemble((f"{glyph} ", style), name)
    if view.state is not DecisionState.TENTATIVE:
        return [head.truncate(width, ellipsis=True), _excerpt(draw, view, width)]
    delivery = draw.delivery(view.delivery)
    standing = delivery or draw.window(view, now, bar=True)
    return [row(head, standing, width), _excerpt(draw, view, width)]


def _excerpt(draw: Presentation, view: DecisionView, width: int) -> Content:
    return muted("  " + one_line(view.message.text, 200)).truncate(width, ellipsis=True)


@dataclass(frozen=True, slots=True)
class Standing:
    """How one project stands: its activity, answers nobody has seen, messages that wait.

    `number` opens its pane, 0 where no key does; `visible`: its pane is open.
    """

    activity: Activity
    unread: int = 0
    waiting: int = 0
    number: int = 0
    visible: bool = False


def project_line(draw: Presentation, project: Project, standing: Standing, width: int) -> Content:
    """A project in the side panel."""
    activity = standing.activity
    glyph, style = GLYPHS[activity]
    digit = f"{standing.number} " if 0 < standing.number < 10 else "  "
    name = Content.assemble(
        (digit, MUTED),
        (f"{glyph} ", style),
        (draw.name(project.id, 80), "bold $text-accent" if standing.visible else ""),
    )
    if standing.unread:
        mark = unread(standing.unread)
        name = name.truncate(max(8, width - mark.cell_length), ellipsis=True) + mark
    word = muted(draw.texts(f"projects.{activity}"))
    if standing.waiting:
        word = muted(draw.texts("projects.waiting", count=standing.waiting))
    quiet = not standing.waiting and activity in (Activity.IDLE, Activity.ASLEEP)
    if quiet and name.cell_length + word.cell_length + 1 > width:
        return name.truncate(width, ellipsis=True)
    return row(name, word, width)


def glyph_line(
    draw: Presentation,
    activities: Mapping[str, Activity],
    width: int,
    unread_answers: Mapping[str, int] = MappingProxyType({}),
    visible: str | None = None,
) -> tuple[Content, list[tuple[int, str]]]:
    """All projects as one line of glyphs and names; what needs the person comes first.

    The second part says at which cell each project's piece ends.
    """
    urgency = [Activity.NEEDS_YOU, Activity.FAILED, Activity.UNKNOWN, Activity.WORKING]
    order = sorted(
        activities,
        key=lambda each: (activities[each] not in urgency, list(activities).index(each)),
    )
    parts: list[Content] = []
    ends: list[tuple[int, str]] = []
    used = 0
    for place, project in enumerate(order):
        glyph, style = GLYPHS[activities[project]]
        name = Content.styled(draw.name(project, 16), "reverse" if project == visible else "")
        mark = unread(unread_answers.get(project, 0))
        part = Content.assemble((f"{glyph} ", style), name, mark)
        rest = len(order) - place
        room = width - used - (len(f"  +{rest}") if rest > 1 else 0)
        if part.cell_length > room:
            parts.append(muted(f"+{rest}"))
            break
        parts.append(part)
        used += part.cell_length + 2
        ends.append((used, project))
    return Content("  ").join(parts).truncate(width, ellipsis=True), ends
