"""What stands beside the feed: decisions with their windows, projects with their glyphs."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from isola_core.model import DecisionState, DecisionView, Project
from isola_tui.board import Activity
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


def project_line(draw: Presentation, project: Project, activity: Activity, width: int) -> Content:
    """A project in the side panel."""
    glyph, style = GLYPHS[activity]
    name = Content.assemble((f"{glyph} ", style), draw.name(project.id, 80))
    word = muted(draw.texts(f"projects.{activity}"))
    quiet = activity in (Activity.IDLE, Activity.ASLEEP)
    if quiet and name.cell_length + word.cell_length + 1 > width:
        return name.truncate(width, ellipsis=True)
    return row(name, word, width)


def glyph_line(draw: Presentation, activities: Mapping[str, Activity], width: int) -> Content:
    """All projects as one line of glyphs and names; what needs the person comes first."""
    urgency = [Activity.NEEDS_YOU, Activity.FAILED, Activity.UNKNOWN, Activity.WORKING]
    order = sorted(
        activities,
        key=lambda each: (activities[each] not in urgency, list(activities).index(each)),
    )
    parts: list[Content] = []
    used = 0
    for place, project in enumerate(order):
        glyph, style = GLYPHS[activities[project]]
        part = Content.assemble((f"{glyph} ", style), draw.name(project, 16))
        rest = len(order) - place
        room = width - used - (len(f"  +{rest}") if rest > 1 else 0)
        if part.cell_length > room:
            parts.append(muted(f"+{rest}"))
            break
        parts.append(part)
        used += part.cell_length + 2
    return Content("  ").join(parts).truncate(width, ellipsis=True)
