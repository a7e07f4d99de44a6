"""Delegated mode: a message comes in, is attributed, dispatched, and can be taken back.

Each method is one use case. What it changes, it changes in one transaction that moves the decision
row first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isola_core.attribution.router import Router
from isola_core.errors import Conflict, InvalidInput, TextNeeded
from isola_core.model import (
    ACTIVE_DECISIONS,
    Attribution,
    Candidate,
    DecisionState,
    DecisionView,
    DeliveryState,
    Project,
    Stage,
    Target,
)
from isola_core.secrets import mask, refuse_secrets
from isola_core.service.intake import Accepted, Incoming, Intake, checked_text
from isola_core.service.outbox import (
    Undone,
    active_project,
    enqueue,
    follow_inertia,
    give_target,
    new_attempt,
    take_back,
)
from isola_core.service.settings import Core
from isola_core.store import conversations, decisions, deliveries, memories
from isola_core.store.transaction import Transaction
from isola_core.text import normalise_message


@dataclass(frozen=True, slots=True)
class Corrected:
    """A correction: the old decision, the new one, and what was undone on the way."""

    old: DecisionView
    new: DecisionView
    undone: Undone
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A withdrawal, the text for the entry, and what was undone."""

    decision: DecisionView
    text: str
    undone: Undone


class DelegatedService:
    """The use cases of delegated mode, for one person and one process."""

    def __init__(self, core: Core, router: Router) -> None:
        self.core = core
        self._intake = Intake(core, router)

    # -- taking messages in

    @property
    def projects(self) -> tuple[Project, ...]:
        """The projects that messages may go to, as of the last refresh."""
        return self._intake.projects

    async def refresh(self, conversation: str) -> None:
        """Bring what `preview` uses up to date; called at start and when the store changed."""
        await self._intake.refresh(conversation)

    def preview(
        self,
        text: str,
        conversation: str,
        *,
        asking: tuple[str, ...] = (),
        visible: str | None = None,
    ) -> Attribution:
        """Where this text would go, from memory alone: no I/O, made for every key."""
        return self._intake.preview(text, conversation, asking=asking, visible=visible)

    async def accept(self, incoming: Incoming) -> Accepted:
        """Store a message, attribute it, and put it into the outbox or on a card.

        Raises:
            InvalidInput: blank, or over 4 MiB.
            SecretRefused: it holds a credential and was not sent unstored; nothing was stored.
            NotFound, Conflict: a target chosen by hand is unknown or retired.
        """
        return await self._intake.accept(incoming)

    # -- what a person does with a decision

    async def confirm(self, decision: str, target: Target) -> DecisionView:
        """Answer a card. The same answer again changes nothing.

        Raises:
            NotFound, Ambiguous: the decision or the project is not there.
            Conflict: it was decided otherwise; `correct` changes that.
        """

        def work(tx: Transaction) -> DecisionView:
            view = self._find(tx, decision)
            if view.state is not DecisionState.WAITING_CONFIRMATION:
                sent = view.state in ACTIVE_DECISIONS
                if sent and (view.project, view.lane) == (target.project, target.lane):
                    return view
                if not sent:
                    raise Conflict(f"{view.id} is {_state_words(view)} already; send it again")
                raise Conflict(
                    f"{view.id} is {_state_words(view)}; `isola correct {view.id} "
                    f"{target.project}` changes where it goes"
                )
            give_target(tx, self.core, view, target)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def correct(self, decision: str, target: Target, text: str | None = None) -> Corrected:
        """Wrong project: take the decision back and send the message to `target`, at once.

        `text` is needed only for a message that was sent unstored and that this process never had.

        Raises:
            NotFound, Ambiguous, Conflict: as `confirm`; also when it is there already.
            TextNeeded: see `text`.
        """

        def work(tx: Transaction) -> Corrected:
            view = self._find(tx, decision)
            if view.state is DecisionState.CORRECTED:
                return self._already_corrected(tx, view, target)
            if view.state is DecisionState.WITHDRAWN or view.project is None:
                raise Conflict(
                    f"{view.id} is {_state_words(view)}; "
                    + (
                        f"`isola confirm {view.id} {target.project}` chooses its project"
                        if view.state is DecisionState.WAITING_CONFIRMATION
                        else "send the message again"
                    )
                )
            if (view.project, view.lane) == (target.project, target.lane):
                raise Conflict(f"{view.id} is in {target.project} already; nothing was changed")
            project = active_project(tx, self.core, target.project)
            self._need_text(view, text)
            undone = take_back(
                tx, self.core, view, DecisionState.CORRECTED, f"corrected to {project.name}"
            )
            new = self.core.ids.new("d")
            decisions.insert_decision(
                tx,
                self.core.owner.id,
                new,
                view.message.id,
                DecisionState.TENTATIVE,
                Attribution(
                    Stage.CHOSEN,
                    1.0,
                    f"you corrected it from {view.project}",
                    target,
                    automatic=True,
                    candidates=(Candidate(target.project, 1.0, "your correction"),),
                ),
                target=target,
                previous=view.id,
            )
            enqueue(tx, self.core, new, project, target.lane)
            follow_inertia(tx, self.core, view.message.conversation)
            return Corrected(self._find(tx, view.id), self._find(tx, new), undone)

        return await self.core.store.write(work)

    def _already_corrected(self, tx: Transaction, view: DecisionView, target: Target) -> Corrected:
        successor = decisions.successor(tx, view.id)
        assert successor is not None
        new = self._find(tx, successor)
        if (new.project, new.lane) == (target.project, target.lane):
            return Corrected(view, new, Undone(), duplicate=True)
        raise Conflict(
            f"{view.id} was corrected to {new.project} already; `isola correct {new.id} "
            f"{target.project}` corrects the correction"
        )

    def _need_text(self, view: DecisionView, text: str | None) -> None:
        if not view.message.masked:
            return
        if text is None:
            if self.core.vault.text_of(view.message.id) is None:
                raise TextNeeded(
                    f"{view.id} was sent unstored and its text is gone; give the text again "
                    "to correct it, or withdraw it"
                )
            return
        full = normalise_message(text)
        if mask(full) != view.message.text:
            raise InvalidInput("this is not the text that was sent; nothing was changed")
        self.core.vault.texts[view.message.id] = full

    async def withdraw(self, decision: str) -> Withdrawn:
        """None of these, after all: the message goes nowhere and leaves nothing behind.

        Raises:
            NotFound, Ambiguous, Conflict: unknown, or ended already.
        """

        def work(tx: Transaction) -> Withdrawn:
            view = self._find(tx, decision)
            if view.state in (DecisionState.WITHDRAWN, DecisionState.CORRECTED):
                raise Conflict(f"{view.id} is {_state_words(view)} already; nothing was changed")
            undone = take_back(tx, self.core, view, DecisionState.WITHDRAWN, "withdrawn")
            follow_inertia(tx, self.core, view.message.conversation)
            text = self.core.vault.text_of(view.message.id) or view.message.text
            return Withdrawn(self._find(tx, view.id), text, undone)

        return await self.core.store.write(work)

    async def undo(self, decision: str) -> Corrected | Withdrawn:
        """Take the last step back: a correction is corrected back, a sending withdrawn.

        A decision that was corrected stands for the one that took its place.

        Raises:
            Conflict: it was committed without a correction; `withdraw` is the deliberate act.
        """
        view = await self.core.store.read(lambda tx: self._newest(tx, decision))
        sent = view.state in (DecisionState.TENTATIVE, DecisionState.COMMITTED)
        if view.previous is not None and sent:
            previous = view.previous
            before = await self.core.store.read(lambda tx: self._find(tx, previous))
            if before.project is not None:
                return await self.correct(view.id, Target(before.project, before.lane))
        if view.state is DecisionState.COMMITTED:
            raise Conflict(
                f"{view.id} is committed: there is no step to undo; take it back instead"
            )
        return await self.withdraw(view.id)

    def _newest(self, tx: Transaction, decision: str) -> DecisionView:
        """The decision that stands for this one now."""
        view = self._find(tx, decision)
        while view.state is DecisionState.CORRECTED:
            successor = decisions.successor(tx, view.id)
            assert successor is not None
            view = self._find(tx, successor)
        return view

    async def commit_now(self, decision: str) -> DecisionView:
        """End the window: committed at once, or as soon as the turn has ended.

        Raises:
            Conflict: it is not tentative, or its delivery failed or is unknown.
        """

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            match view.delivery:
                case DeliveryState.ANSWERED:
                    decisions.move_decision(tx, view, DecisionState.COMMITTED)
                case DeliveryState.FAILED | DeliveryState.UNKNOWN | DeliveryState.CANCELLED:
                    raise Conflict(
                        f"the delivery of {view.id} is {view.delivery}: send it again "
                        f"(`isola resolve {view.id} --resend`) or withdraw it first"
                    )
                case _:
                    newest = deliveries.newest_delivery(tx, view.id)
                    begun = newest is not None and newest.written is not None
                    deadline = tx.now if begun else None
                    decisions.set_window(tx, view.id, deadline, held=False, commit_now=True)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def hold(self, decision: str) -> DecisionView:
        """Keep the window open until it is released."""

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            decisions.set_window(tx, view.id, None, held=True)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def release(self, decision: str) -> DecisionView:
        """Let a held window run again, in full length."""

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            if view.held:
                newest = deliveries.newest_delivery(tx, view.id)
                begun = newest is not None and newest.written is not None
                deadline = tx.now + self.core.settings.isolation_ms if begun else None
                decisions.set_window(tx, view.id, deadline, held=False)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def resend(self, decision: str) -> DecisionView:
        """A new attempt for a delivery that failed, was stopped, or is unknown.

        For an unknown one this is the person's choice: the text may arrive twice.
        """

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            self._need_text(view, None)
            newest = deliveries.newest_delivery(tx, view.id)
            if newest is not None and newest.state is DeliveryState.UNKNOWN:
                error = "unknown; you sent it again"
                deliveries.move_delivery(tx, newest, DeliveryState.FAILED, error=error)
            elif newest is None or newest.state not in (
                DeliveryState.FAILED,
                DeliveryState.CANCELLED,
            ):
                raise Conflict(f"the delivery of {view.id} is {view.delivery}; nothing to resend")
            new_attempt(tx, self.core, view.id)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def settle(self, decision: str) -> DecisionView:
        """The person has seen that an unknown delivery arrived: its turn counts as ended."""

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            newest = deliveries.newest_delivery(tx, view.id)
            if newest is None or newest.state is not DeliveryState.UNKNOWN:
                raise Conflict(f"the delivery of {view.id} is {view.delivery}, not unknown")
            deliveries.move_delivery(tx, newest, DeliveryState.ANSWERED, proof="seen by the person")
            deliveries.restore_turn(tx, newest.id)
            decisions.start_window(tx, view.id, self.core.settings.isolation_ms)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def edit_waiting(self, decision: str, text: str) -> DecisionView:
        """Change the text of a message that still waits for its session.

        Raises:
            InvalidInput, SecretRefused: as `accept`.
            Conflict: it is on its way already, or was sent unstored.
        """
        body = checked_text(text)
        refuse_secrets(body)

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            if view.delivery is not DeliveryState.PENDING:
                raise Conflict(f"{view.id} is on its way already; nothing was changed")
            if view.message.masked:
                raise Conflict(f"{view.id} was sent unstored; take it back and send it again")
            if deliveries.is_remembered_text(tx, view.message.id):
                raise Conflict(
                    f"the text of {view.id} as it is was in a session already; take it back and "
                    "send it again"
                )
            conversations.replace_text(tx, view.message.id, body)
            tx.changed("decision", view.id)
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def interrupt(self, decision: str) -> DecisionView:
        """Stop the running turn; the decision stays, the message can be sent again."""

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            newest = deliveries.newest_delivery(tx, view.id)
            match newest.state if newest else None:
                case DeliveryState.PENDING | DeliveryState.RUNNING:
                    assert newest is not None
                    error = "stopped before it was sent"
                    deliveries.move_delivery(tx, newest, DeliveryState.CANCELLED, error=error)
                case DeliveryState.WRITTEN | DeliveryState.RECEIVED:
                    assert newest is not None
                    deliveries.request_interrupt(tx, newest)
                case _:
                    raise Conflict(f"no turn of {view.id} is running")
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    def _find(self, tx: Transaction, decision: str) -> DecisionView:
        return decisions.find_decision(tx, self.core.owner.id, decision)

    def _tentative(self, tx: Transaction, decision: str) -> DecisionView:
        view = self._find(tx, decision)
        if view.state is not DecisionState.TENTATIVE:
            raise Conflict(f"{view.id} is {_state_words(view)}, not tentative")
        return view

    # -- looking

    async def decision(self, decision: str) -> DecisionView:
        """One decision by id or unambiguous beginning."""
        return await self.core.store.read(lambda tx: self._find(tx, decision))

    async def latest(
        self,
        limit: int = 100,
        states: Sequence[DecisionState] = (),
        project: str | None = None,
        conversation: str | None = None,
        before: str | None = None,
    ) -> list[DecisionView]:
        """The newest decisions (older than `before`, if that is given), oldest of them first."""
        return await self.core.store.read(
            lambda tx: decisions.latest_decisions(
                tx,
                self.core.owner.id,
                limit=limit,
                states=states,
                project=project,
                conversation=conversation,
                before=before,
            )
        )

    async def search(self, query: str, limit: int = 50) -> list[DecisionView]:
        """The newest decisions whose message or reply holds `query`, newest first.

        The person's own search over everything: each hit names its project.
        """
        wanted = " ".join(normalise_message(query).split())
        if not wanted:
            return []
        owner = self.core.owner.id
        return await self.core.store.read(
            lambda tx: decisions.find_decisions(tx, owner, wanted, limit)
        )

    async def writes_of(self, decision: str) -> list[tuple[int, str, str]]:
        """(ordinal, state, result) of a decision's write tasks, for explanations."""
        rows = await self.core.store.read(lambda tx: memories.write_task_results(tx, decision))
        return [(ordinal, str(state), result) for ordinal, state, result in rows]

    # -- drafts

    async def save_draft(self, conversation: str, text: str, target: str | None = None) -> None:
        """Keep what stands in the entry; credentials are masked."""
        refuse_secrets(conversation, "conversation")
        kept = mask(normalise_message(text))
        owner = self.core.owner.id
        await self.core.store.write(
            lambda tx: conversations.save_draft(tx, owner, conversation, kept, target)
        )

    async def draft(self, conversation: str) -> tuple[str, str | None]:
        """(text, target) that stood in the entry, ("", None) if nothing did."""
        owner = self.core.owner.id
        found = await self.core.store.read(lambda tx: conversations.draft(tx, owner, conversation))
        return found or ("", None)


def _state_words(view: DecisionView) -> str:
    match view.state:
        case DecisionState.WAITING_CONFIRMATION:
            return "waiting for your choice"
        case DecisionState.CORRECTED:
            return "corrected"
        case _:
            return f"{view.state.lower()} in {view.project}" if view.project else view.state.lower()


__all__ = ["Accepted", "Corrected", "DelegatedService", "Incoming", "Withdrawn"]
