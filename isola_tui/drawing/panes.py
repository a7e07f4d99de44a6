"""A pane's own lines: the header that says whose session this is, and the queue below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from isola_core.model import DecisionView, Target
from isola_tui.board import Activity
from isola_tui.lines import MUTED, muted, one_line, row
from isola_tui.presentation import GLYPHS, Presentation

QUEUE_LINES = 4
"""Of waiting messages; the others are counted."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Whose session a pane shows, how it is, which harness answers, and what is out of sight."""

    target: Target
    activity: Activity
    harness: str = ""
    cards: int = 0
    newer: bool = False


def heading(draw: Presentation, told: Heading, width: int) -> Content:
    """The pane's first line."""
    glyph, style = GLYPHS[told.activity]
    parts = [
        Content.styled(f"{glyph} ", style),
        Content.styled(draw.aimed(told.target), "bold"),
        muted(f"  {draw.texts(f'projects.{told.activity}')}"),
    ]
    if told.cards:
        said = draw.texts.count("pane.cards", told.cards, key=draw.keys.get("answer", ""))
        parts.append(Content.styled(f" · {said}", "$text-warning"))
    if told.newer:
        key = draw.keys.get("scroll_down", "")
        parts.append(Content.styled(f" · {draw.texts('pane.newer', key=key)}", "$text-warning"))
    if told.harness:
        parts.append(muted(f" · {one_line(told.harness, 40)}"))
    back = muted(draw.texts("pane.back", key=draw.keys.get("back", "")))
    return row(Content.empty().join(parts), back, width)


def queue_lines(
    draw: Presentation, views: Sequence[DecisionView], selected: str | None, width: int
) -> list[Content]:
    """The messages that wait for the session, in the order in which it gets them."""
    if not views:
        return []
    keys = {key: draw.keys.get(key, "") for key in ("previous", "edit", "withdraw")}
    head = Content.styled(f"◌ {draw.texts.count('queue.title', len(views))}", "bold")
    how = muted(f"  {draw.texts('queue.keys', **keys)}")
    lines = [(head + how).truncate(width, ellipsis=True)]
    place = next((place for place, each in enumerate(views) if each.id == selected), 0)
    first = max(0, min(place - QUEUE_LINES + 1, len(views) - QUEUE_LINES))
    for number, view in enumerate(views[first : first + QUEUE_LINES], first + 1):
        text = one_line(view.message.text, 300)
        line = Content.assemble((f" {number} ", MUTED), text).truncate(width, ellipsis=True)
        if view.id == selected:
            line = line.pad_right(max(0, width - line.cell_length)).stylize("on $primary 25%")
        lines.append(line)
    if (hidden := len(views) - QUEUE_LINES) > 0:
        lines.append(muted(f" {draw.texts.count('queue.more', hidden)}"))
    return lines


def unread(count: int) -> Content:
    """The mark of answers that nobody has seen yet."""
    return Content.styled(f" •{count}", "bold $text-accent") if count else Content.empty()
