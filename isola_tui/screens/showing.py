"""What the home screen shows of a board, as data: the feed's items, the welcome, the key line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textual.content import Content

from isola_core.model import DecisionState, DecisionView
from isola_core.service.live import Live
from isola_core.store.history import Moves
from isola_tui.board import Board, Item, OpenQuestion
from isola_tui.drawing.cards import choices
from isola_tui.presentation import Presentation

AFTER_MS = 1_000
"""A window that is over counts down once more, so that 0:00 is drawn."""


def items(
    views: Sequence[DecisionView],
    moves: Moves,
    presentation: Presentation,
    live: Live,
    now: int,
    *,
    selected: str | None,
    opened: Collection[str],
    answering: str | None,
    marked: Collection[str] = (),
    bare: bool = False,
) -> list[Item]:
    """Decisions as the feed shows them; `bare`: as a pane does, which renders their replies."""
    found = []
    for view in views:
        waiting = view.state is DecisionState.WAITING_CONFIRMATION
        found.append(
            Item(
                view,
                now=now if counts_down(view, now) else 0,
                partial=live.partial.get(view.id, ""),
                doing=live.status.get(view.id, ""),
                before=moves.came_from.get(view.id),
                after=moves.went_to.get(view.id),
                opened=view.id in opened,
                selected=view.id == selected,
                answering=view.id == answering,
                marked=view.id in marked,
                bare=bare,
                choices=choices(presentation, view) if waiting else (),
            )
        )
    return found


def counts_down(view: DecisionView, now: int) -> bool:
    """Whether the decision's window is running, so that it must be drawn every second."""
    return (
        view.state is DecisionState.TENTATIVE
        and view.deadline is not None
        and view.deadline + AFTER_MS > now
    )


def open_questions(live: Live) -> tuple[OpenQuestion, ...]:
    """What agents ask now, in the order in which they began to ask."""
    return tuple(
        OpenQuestion(session, live.sessions[session].project, question)
        for session, asked in live.questions.items()
        if session in live.sessions
        for question in asked
    )


def welcome(board: Board, presentation: Presentation) -> Content:
    """What stands in the feed before the first message: what to do first."""
    texts, keys = presentation.texts, presentation.keys
    head = Content.styled(texts("feed.welcome"), "bold $text-primary")
    listed = board.listed()
    if listed:
        target, correct = keys.get("target_next", ""), keys.get("correct", "")
        said = [
            texts.count("feed.registered", len(listed)),
            texts("feed.ready", target=target, correct=correct),
        ]
    else:
        new = keys.get("new_project", "")
        said = [texts("feed.no_projects", new=new), texts("feed.no_projects_note")]
    return Content("\n\n").join([head, *(Content(each) for each in said)])


def key_names(board: Board, *, answering: bool) -> list[str]:
    """The acts that the key line names now, the most important first."""
    if answering:
        return ["back", "answer", "quit"]
    names = ["correct", "menu", "target_next", "pane", "help", "quit", "palette", "new_project"]
    if not board.listed():
        names = ["new_project", "help", "quit", "palette"]
    needs = ["answer"] if board.cards() or board.questions or board.failing() else []
    return [*needs, *names]
