"""What the home screen shows, as plain data: projects, decisions, open questions.

Widgets draw it, the watcher keeps it up to date; nothing here knows of either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
    Target,
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
    to. `answering`: the card has the keyboard. `marked`: it is one of several to be corrected.
    `bare`: the reply stands elsewhere.
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
    marked: bool = False
    bare: bool = False
    choices: tuple[Choice, ...] = ()


@dataclass(slots=True)
class Board:
    """The newest decisions (oldest first), the projects, and what waits for the person.

    `unsettled` holds every decision that waits for a choice or whose turn has not ended well,
    however old it is. `unread` are answers that came while nobody looked, by project; they are
    kept in memory only, so every start begins with none.
    """

    projects: Mapping[str, Project] = field(default_factory=dict)
    decisions: dict[str, DecisionView] = field(default_factory=dict)
    questions: tuple[OpenQuestion, ...] = ()
    unsettled: dict[str, DecisionView] = field(default_factory=dict)
    unread: dict[str, set[str]] = field(default_factory=dict)
    arrived: list[DecisionView] = field(default_factory=list)
    """Answers that have come since somebody took them out of this list."""

    def put(self, views: Iterable[DecisionView]) -> None:
        """Take in new and changed decisions; the oldest ones make room."""
        for view in views:
            known = self.decisions.get(view.id)
            if known is not None and _answered(view) and not _answered(known):
                self.arrived.append(view)
            self.decisions[view.id] = view
            self.keep(view)
        for old in list(self.decisions)[:-KEPT]:
            del self.decisions[old]

    def replace(self, views: Iterable[DecisionView]) -> None:
        """These are the newest decisions now; one that is new and answered has just arrived."""
        known, newest = self.decisions, {view.id: view for view in views}
        self.arrived += [
            view
            for view in newest.values()
            if _answered(view) and not ((old := known.get(view.id)) and _answered(old))
        ]
        self.decisions = {}
        self.put(newest.values())

    def keep(self, view: DecisionView) -> None:
        """Take in what a decision waits for, or that it waits for nothing any more."""
        if _unsettled(view):
            self.unsettled[view.id] = view
        else:
            self.unsettled.pop(view.id, None)
        if view.state not in ACTIVE_DECISIONS and view.project is not None:
            self.unread.get(view.project, set()).discard(view.id)

    def read(self, project: str | None = None) -> bool:
        """The person has seen a project's answers, or all of them; whether any were unread."""
        if project is None:
            found = any(self.unread.values())
            self.unread.clear()
            return found
        return bool(self.unread.pop(project, None))

    def unread_counts(self) -> dict[str, int]:
        """How many answers of each project nobody has seen yet."""
        return {project: len(each) for project, each in self.unread.items() if each}

    def see(self, ids: Collection[str]) -> bool:
        """These answers are in view; whether any of them was unread."""
        seen = set(ids)
        found = any(each & seen for each in self.unread.values())
        for project in list(self.unread):
            self.unread[project] -= seen
            if not self.unread[project]:
                del self.unread[project]
        return found

    def queue(self, target: Target) -> list[DecisionView]:
        """The messages that wait for a session, in the order in which they were sent."""
        return [
            each
            for each in self.unsettled.values()
            if each.delivery is DeliveryState.PENDING
            and (each.project, each.lane) == (target.project, target.lane)
        ]

    def waiting(self) -> dict[str, int]:
        """How many messages wait for each project's sessions while a turn runs."""
        busy = {(each.project, each.lane) for each in self.running()}
        found: dict[str, int] = {}
        for each in self.unsettled.values():
            waits = each.delivery is DeliveryState.PENDING
            if waits and each.project and (each.project, each.lane) in busy:
                found[each.project] = found.get(each.project, 0) + 1
        return found

    def failing(self) -> list[DecisionView]:
        """Deliveries that failed or whose end nobody saw, oldest first."""
        ended = (DeliveryState.FAILED, DeliveryState.UNKNOWN)
        return [each for each in self.unsettled.values() if each.delivery in ended]

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
        return [each for each in self.unsettled.values() if each.state is waiting]

    def newest(self, conversation: str) -> DecisionView | None:
        """What a key without a selection means: the conversation's newest active decision."""
        newest = reversed(self.decisions.values())
        mine = (each for each in newest if each.message.conversation == conversation)
        return next((each for each in mine if each.state in ACTIVE_DECISIONS), None)

    def running(self) -> list[DecisionView]:
        """Decisions whose turn is running."""
        return [each for each in self.unsettled.values() if each.delivery in LIVE_DELIVERIES]

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
            found[view.project] = activity_of(view)
        for each in self.running():
            if each.project in found:
                found[each.project] = Activity.WORKING
        for question in self.questions:
            if question.project in found:
                found[question.project] = Activity.NEEDS_YOU
        return found


def _answered(view: DecisionView) -> bool:
    return view.delivery is DeliveryState.ANSWERED and bool(view.reply)


def _unsettled(view: DecisionView) -> bool:
    if view.state is DecisionState.WAITING_CONFIRMATION:
        return True
    return view.state is DecisionState.TENTATIVE and view.delivery not in _SETTLED


_SETTLED: Final = (None, DeliveryState.ANSWERED, DeliveryState.CANCELLED)


def activity_of(view: DecisionView) -> Activity:
    """How a project is after this message alone."""
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
