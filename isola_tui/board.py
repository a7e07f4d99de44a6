"""What the home screen shows, as plain data: projects, decisions, open questions.

Widgets draw it, the watcher keeps it up to date; nothing here knows of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from isola_core.model import (
    ACTIVE_DECISIONS,
    LIVE_DELIVERIES,
    DecisionState,
    DecisionView,
    DeliveryState,
    Project,
)
from isola_core.ports import Question

KEPT: Final = 80
"""Decisions that the feed holds; older ones stay in the store."""


class Activity(StrEnum):
    """How a project is, as its glyph tells it."""

    IDLE = "idle"
    WORKING = "working"
    NEEDS_YOU = "needs_you"
    FAILED = "failed"
    UNKNOWN = "unknown"
    ASLEEP = "asleep"


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An agent's question and the session and project that ask it."""

    session: str
    project: str
    question: Question


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer of a card: the letter that gives it, what it says, and why it is offered."""

    letter: str
    label: str
    project: str | None = None
    confidence: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One decision as the feed shows it.

    `now` is 0 where nothing counts down. `partial` is the reply so far and `doing` what the agent
    does, while its turn runs. `before` and `after` are the projects that it was corrected from and
    to. `answering`: the card has the keyboard.
    """

    view: DecisionView
    now: int = 0
    partial: str = ""
    doing: str = ""
    before: str | None = None
    after: str | None = None
    opened: bool = False
    selected: bool = False
    answering: bool = False
    choices: tuple[Choice, ...] = ()


@dataclass(slots=True)
class Board:
    """The newest decisions (oldest first), the projects, and what waits for the person."""

    projects: Mapping[str, Project] = field(default_factory=dict)
    decisions: dict[str, DecisionView] = field(default_factory=dict)
    questions: tuple[OpenQuestion, ...] = ()

    def put(self, views: Iterable[DecisionView]) -> None:
        """Take in new and changed decisions; the oldest ones make room."""
        for view in views:
            self.decisions[view.id] = view
        for old in list(self.decisions)[:-KEPT]:
            del self.decisions[old]

    def listed(self) -> list[Project]:
        """The projects that a message may go to."""
        return [each for each in self.projects.values() if not each.retired]

    def asking(self) -> tuple[str, ...]:
        """The projects whose agents ask something."""
        return tuple(sorted({each.project for each in self.questions}))

    def successor(self, decision: str) -> DecisionView | None:
        """The decision that corrected this one."""
        found = (each for each in self.decisions.values() if each.previous == decision)
        return next(found, None)

    def cards(self) -> list[DecisionView]:
        """Decisions that wait for the person's choice, oldest first."""
        waiting = DecisionState.WAITING_CONFIRMATION
        return [each for each in self.decisions.values() if each.state is waiting]

    def newest(self, conversation: str) -> DecisionView | None:
        """What a key without a selection means: the conversation's newest active decision."""
        newest = reversed(self.decisions.values())
        mine = (each for each in newest if each.message.conversation == conversation)
        return next((each for each in mine if each.state in ACTIVE_DECISIONS), None)

    def running(self) -> list[DecisionView]:
        """Decisions whose turn is running."""
        return [each for each in self.decisions.values() if each.delivery in LIVE_DELIVERIES]

    def sent(self, conversation: str) -> list[str]:
        """The texts of a conversation, oldest first, for the entry's history."""
        found: dict[str, str] = {}
        for view in self.decisions.values():
            message = view.message
            if message.conversation == conversation and not message.masked:
                found.setdefault(message.id, message.text)
        return list(found.values())

    def activities(self) -> dict[str, Activity]:
        """How each project is: an open question first, then what its newest message came to."""
        found = dict.fromkeys(self.projects, Activity.ASLEEP)
        for view in self.decisions.values():
            if view.project is None or view.project not in found:
                continue
            found[view.project] = _activity(view)
        for each in self.running():
            if each.project in found:
                found[each.project] = Activity.WORKING
        for question in self.questions:
            if question.project in found:
                found[question.project] = Activity.NEEDS_YOU
        return found


def _activity(view: DecisionView) -> Activity:
    if view.state not in ACTIVE_DECISIONS:
        return Activity.IDLE
    match view.delivery:
        case DeliveryState.FAILED:
            return Activity.FAILED
        case DeliveryState.UNKNOWN:
            return Activity.UNKNOWN
        case DeliveryState.PENDING:
            return Activity.WORKING
        case _:
            return Activity.IDLE
