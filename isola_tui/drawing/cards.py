"""Cards: why one asks, its answers with their letters, and how to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from isola_core.model import DecisionView
from isola_tui.board import Choice, Item
from isola_tui.lines import MUTED, muted, one_line, wrapped
from isola_tui.presentation import Presentation

LETTERS: Final = "abcdefghi"
"""A card's candidates; `n`, `o` and `p` are its other answers."""


def choices(draw: Presentation, view: DecisionView) -> tuple[Choice, ...]:
    """The answers of a card: candidates first, then the other projects, then the ways out."""
    ranked = {each.project: each for each in view.attribution.candidates}
    open_projects = [each for each in draw.projects.values() if not each.retired]
    known = {each.id for each in open_projects}
    order = [each for each in ranked if each in known]
    order += [each.id for each in open_projects if each.id not in ranked and each.listed]
    found = [
        Choice(
            letter,
            draw.name(project),
            project,
            ranked[project].confidence if project in ranked else None,
            ranked[project].reason if project in ranked else "",
        )
        for letter, project in zip(LETTERS, order, strict=False)
    ]
    if len(order) > len(found):
        found.append(Choice("o", draw.texts("card.other")))
    found.append(Choice("p", draw.texts("card.new")))
    found.append(Choice("n", draw.texts("card.none")))
    return tuple(found)


def card(draw: Presentation, item: Item, width: int) -> list[Content]:
    """Why it asks, the answers with their letters, and how to answer."""
    lines: list[Content] = []
    if reason := one_line(item.view.attribution.reason, 200):
        lines += wrapped(muted(reason), width)
    if not any(each.project for each in item.choices):
        lines += wrapped(Content.styled(draw.texts("card.empty"), "$text-warning"), width)
    lines += answers(draw, item.choices, width, active=item.answering)
    return [*lines, how_to_answer(draw, "card", width, active=item.answering)]


def answers(
    draw: Presentation, choices: Sequence[Choice], width: int, *, active: bool
) -> list[Content]:
    """One line for each answer."""
    names = [Content(each.label).cell_length for each in choices if each.project]
    column = min(max(names, default=0), max(8, width // 3))
    lines = []
    for each in choices:
        letter = Content.styled(
            f" {each.letter} ", "bold $text on $warning 40%" if active else "bold $text-warning"
        )
        label = Content(one_line(each.label, 200))
        if each.project:
            label = label.truncate(column, ellipsis=True, pad=True)
        share = f"  {each.confidence:.2f}" if each.confidence is not None else ""
        reason = one_line(each.reason, 160)
        line = Content.assemble(letter, " ", label, share, "  ", (reason, MUTED))
        lines.append(line.truncate(width, ellipsis=True))
    return lines


def how_to_answer(draw: Presentation, kind: str, width: int, *, active: bool) -> Content:
    """The line below a card's answers. `kind` is `card` or `question`."""
    answer, back = draw.keys.get("answer", ""), draw.keys.get("back", "")
    key = f"{kind}.now" if active else f"{kind}.how"
    return muted(draw.texts(key, key=answer, back=back)).truncate(width, ellipsis=True)
