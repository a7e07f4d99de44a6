"""What a person can do with one message, and how each act is told afterwards.

An act runs one use case of the service. `MESSAGE_ACTS` says which of them fit a decision; keys,
menu and palette all read that one table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from isola_core.errors import IsolaError
from isola_core.model import (
    ACTIVE_DECISIONS,
    LIVE_DELIVERIES,
    DecisionState,
    DecisionView,
    DeliveryState,
    Target,
)
from isola_core.service.delegated import Corrected, Withdrawn
from isola_core.service.outbox import Undone
from isola_tui.presentation import Presentation

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime


@dataclass(frozen=True, slots=True)
class MessageAct:
    """One act: its name (action, text and binding id), its letter in the menu, when it fits."""

    name: str
    letter: str
    fits: Callable[[DecisionView], bool]


def _tentative(view: DecisionView) -> bool:
    return view.state is DecisionState.TENTATIVE


def _has_project(view: DecisionView) -> bool:
    return view.state in (DecisionState.TENTATIVE, DecisionState.COMMITTED)


_ENDED: Final = (DeliveryState.FAILED, DeliveryState.CANCELLED, DeliveryState.UNKNOWN)

MESSAGE_ACTS: Final = (
    MessageAct("correct", "c", _has_project),
    MessageAct("withdraw", "w", lambda view: view.state in ACTIVE_DECISIONS),
    MessageAct("undo", "u", _has_project),
    MessageAct("hold", "h", lambda view: _tentative(view) and not view.held),
    MessageAct("release", "h", lambda view: _tentative(view) and view.held),
    MessageAct("commit", "m", lambda view: _tentative(view) and view.delivery not in _ENDED),
    MessageAct(
        "stop",
        "s",
        lambda view: (
            _tentative(view)
            and (view.delivery in LIVE_DELIVERIES or view.delivery is DeliveryState.PENDING)
        ),
    ),
    MessageAct("resend", "r", lambda view: _tentative(view) and view.delivery in _ENDED),
    MessageAct(
        "settle", "a", lambda view: _tentative(view) and view.delivery is DeliveryState.UNKNOWN
    ),
    MessageAct("edit", "e", lambda view: view.delivery is DeliveryState.PENDING),
    MessageAct("mark", "k", lambda view: _has_project(view)),
    MessageAct("pane", "p", lambda view: view.project is not None),
    MessageAct("fold", "f", lambda view: True),
    MessageAct("why", "y", lambda view: True),
)


@dataclass(frozen=True, slots=True)
class Done:
    """What an act came to: the line that tells it, and the text that it gave back, if any."""

    said: str
    text: str | None = None
    rewinding: tuple[str, ...] = ()
    """Decisions that a session is about to forget."""

    steps: tuple[str, ...] = ()
    """The decisions that a correction made."""


class Acts:
    """Runs the acts. Every method raises `IsolaError` where the service refuses."""

    def __init__(self, runtime: Runtime, presentation: Callable[[], Presentation]) -> None:
        self._service = runtime.service
        self._presentation = presentation

    async def correct(self, decision: str, target: Target, text: str | None = None) -> Done:
        """Move a message to its right project; `text` where only a masked copy of it is left."""
        return self._told_correction(await self._service.correct(decision, target, text))

    async def correct_all(
        self, decisions: Sequence[str], target: Target, *, skipped: int = 0
    ) -> Done:
        """Move several messages to their right project, each by itself: one that cannot be moved
        keeps no other from it. `skipped` of them are there already."""
        return await self._several(
            decisions, lambda each: self._service.correct(each, target), skipped
        )

    async def undo_all(self, decisions: Sequence[str]) -> Done:
        """Take the correction of several messages back."""
        return await self._several(decisions, self._service.undo, 0)

    async def _several(
        self,
        decisions: Sequence[str],
        act: Callable[[str], Awaitable[Corrected | Withdrawn]],
        skipped: int,
    ) -> Done:
        done: list[Corrected] = []
        refused: list[str] = []
        for each in decisions:
            try:
                corrected = await act(each)
            except IsolaError as error:
                refused.append(error.message)
            else:
                if isinstance(corrected, Corrected):
                    done.append(corrected)
        texts = self._presentation().texts
        names = dict.fromkeys(self._presentation().name(each.new.project) for each in done)
        said = [texts.count("notice.corrected_many", len(done), new=", ".join(names))]
        said.append(self._undone([(each.undone, each.old) for each in done]))
        if skipped:
            said.append(texts.count("notice.skipped", skipped))
        if refused:
            said.append(texts.count("notice.refused_many", len(refused), error=refused[0]))
        if done:
            key = self._presentation().keys.get("undo", "")
            said.append(texts("undone.inverse", key=key))
        return Done(
            " ".join(each for each in said if each),
            rewinding=tuple(each.old.id for each in done if each.undone.rewinding),
            steps=tuple(each.new.id for each in done),
        )

    async def edit(self, decision: str, text: str) -> Done:
        """Change the text of a message that still waits."""
        view = await self._service.edit_waiting(decision, text)
        return Done(self._say("edited", project=self._presentation().name(view.project)))

    async def withdraw(self, decision: str) -> Done:
        """Take a message back; its text comes with the answer."""
        return self._told_withdrawal(await self._service.withdraw(decision))

    async def undo(self, decision: str) -> Done:
        """Take the last step of a message back."""
        done = await self._service.undo(decision)
        if isinstance(done, Withdrawn):
            return self._told_withdrawal(done)
        return self._told_correction(done)

    async def confirm(self, decision: str, target: Target) -> Done:
        """Answer a card."""
        view = await self._service.confirm(decision, target)
        return Done(self._say("confirmed", project=self._presentation().name(view.project)))

    async def hold(self, view: DecisionView) -> Done:
        """Hold the window open, or release a held one."""
        if view.held:
            await self._service.release(view.id)
            return Done(self._say("released"))
        await self._service.hold(view.id)
        return Done(self._say("held", key=self._presentation().keys.get("hold", "")))

    async def commit(self, decision: str) -> Done:
        """Commit now, or as soon as the turn has ended."""
        view = await self._service.commit_now(decision)
        if view.state is DecisionState.COMMITTED:
            name = self._presentation().name(view.project)
            return Done(self._say("committed", project=name))
        return Done(self._say("commit_soon"))

    async def stop(self, decision: str) -> Done:
        """Stop the running turn."""
        await self._service.interrupt(decision)
        return Done(self._say("stopping"))

    async def resend(self, decision: str) -> Done:
        """Send a failed, stopped or unknown delivery again."""
        await self._service.resend(decision)
        return Done(self._say("resent"))

    async def settle(self, decision: str) -> Done:
        """An unknown delivery did arrive."""
        await self._service.settle(decision)
        return Done(self._say("settled"))

    # -- telling it

    def _say(self, key: str, /, **values: object) -> str:
        return self._presentation().texts(f"notice.{key}", **values)

    def _told_correction(self, done: Corrected) -> Done:
        draw = self._presentation()
        new = draw.name(done.new.project)
        if done.duplicate:
            return Done(self._say("corrected_already", new=new))
        head = self._say("corrected", old=draw.name(done.old.project), new=new)
        said = f"{head} {self._undone([(done.undone, done.old)])}".strip()
        rewinding = (done.old.id,) if done.undone.rewinding else ()
        return Done(said, rewinding=rewinding, steps=(done.new.id,))

    def _told_withdrawal(self, done: Withdrawn) -> Done:
        view = done.decision
        if view.project is None:
            return Done(self._say("withdrawn_card"), done.text)
        head = self._say("withdrawn", project=self._presentation().name(view.project))
        said = f"{head} {self._undone([(done.undone, view)])}".strip()
        return Done(said, done.text, (view.id,) if done.undone.rewinding else ())

    def _undone(self, all_undone: Sequence[tuple[Undone, DecisionView]]) -> str:
        draw = self._presentation()
        texts = draw.texts
        said: list[str] = []
        undone = [each for each, _ in all_undone]
        if any(each.stopped_before_delivery and not each.rewinding for each in undone):
            said.append(texts("undone.before_delivery"))
        if any(each.interrupting for each in undone):
            said.append(texts("undone.interrupting"))
        forgetting = dict.fromkeys(
            draw.name(view.project) for each, view in all_undone if each.rewinding
        )
        said += [texts("undone.rewinding", project=each) for each in forgetting]
        retired = sum(len(each.retired_memories) for each in undone)
        cancelled = sum(each.cancelled_writes for each in undone if not each.retired_memories)
        if retired:
            said.append(texts.count("undone.memories", retired))
        if cancelled:
            said.append(texts.count("undone.writes", cancelled))
        if forgetting:
            said.append(texts("undone.kept"))
        return " ".join(said)
