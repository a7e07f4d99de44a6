"""Delegated mode: a message comes in, is attributed, dispatched, and can be taken back.

Each method is one use case. What it changes, it changes in one transaction that moves the decision
row first; `accept` needs a second one only where an external judge had to be asked in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.router import Router
from isola_core.errors import Conflict, InvalidInput, TextNeeded
from isola_core.model import (
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
from isola_core.service.outbox import (
    Undone,
    active_project,
    enqueue,
    follow_inertia,
    give_target,
    new_attempt,
    take_back,
)
from isola_core.service.routing import RoutingState, refreshed, routing_context
from isola_core.service.settings import MESSAGE_LIMIT, Core
from isola_core.store import conversations, decisions, memories, sessions
from isola_core.store.conversations import NewMessage
from isola_core.store.transaction import Transaction
from isola_core.text import is_blank, normalise_message


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message on its way in.

    `targets` were chosen by hand (or are locked). `shown` is the preview that stood on the screen
    when the person sent it: its target is kept to, or a card says why not. `asking` and `visible`
    are what the screen knows about other sessions. `unstored` sends a text with a credential: the
    store gets a masked copy. `raw` goes to the session as it is and never becomes a memory.
    """

    conversation: str
    text: str
    targets: tuple[Target, ...] = ()
    shown: Attribution | None = None
    event_id: str | None = None
    platform: str = ""
    platform_id: str | None = None
    asking: tuple[str, ...] = ()
    visible: str | None = None
    unstored: bool = False
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The decisions about an accepted message; `duplicate`: it had been accepted before."""

    decisions: tuple[DecisionView, ...]
    duplicate: bool = False


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
        self._router = router
        self._state = RoutingState()
        self._contexts: dict[str, RoutingContext] = {}

    # -- what attribution keeps in memory

    async def refresh(self, conversation: str) -> None:
        """Bring what `preview` uses up to date; called at start and when the store changed."""

        def work(tx: Transaction) -> tuple[RoutingState, RoutingContext]:
            state = refreshed(tx, self.core.owner.id, self._state, counts=True)
            return state, routing_context(tx, self.core, state, conversation)

        self._state, self._contexts[conversation] = await self.core.store.read(work)

    @property
    def projects(self) -> tuple[Project, ...]:
        """The projects that messages may go to, as of the last refresh."""
        return self._state.projects

    def preview(
        self,
        text: str,
        conversation: str,
        *,
        asking: tuple[str, ...] = (),
        visible: str | None = None,
    ) -> Attribution:
        """Where this text would go, from memory alone: no I/O, made for every key."""
        context = self._contexts.get(conversation) or RoutingContext(projects=self._state.projects)
        return self._router.preview(text, replace(context, asking=asking, visible=visible))

    # -- accepting

    async def accept(self, incoming: Incoming) -> Accepted:
        """Store a message, attribute it, and put it into the outbox or on a card.

        Raises:
            InvalidInput: blank, or over 4 MiB.
            SecretRefused: it holds a credential and was not sent unstored; nothing was stored.
            NotFound, Conflict: a target chosen by hand is unknown or retired.
        """
        text = normalise_message(incoming.text)
        if is_blank(text):
            raise InvalidInput("the message is blank; nothing was sent")
        size = len(text.encode())
        if size > MESSAGE_LIMIT:
            raise InvalidInput(
                f"the message has {size:,} bytes, at most {MESSAGE_LIMIT:,} can be sent; nothing "
                "was sent. Put long material into a file of the project and name the file."
            )
        if not incoming.unstored:
            refuse_secrets(text)

        def work(tx: Transaction) -> tuple[Accepted | list[str], RoutingContext | None]:
            return self._accept(tx, incoming, text)

        result, context = await self.core.store.write(work)
        if isinstance(result, Accepted):
            return result
        assert context is not None
        return await self._ask_judge(result, context)

    def _accept(
        self, tx: Transaction, incoming: Incoming, text: str
    ) -> tuple[Accepted | list[str], RoutingContext | None]:
        owner = self.core.owner.id
        known = self._known(tx, incoming)
        if known is not None:
            return Accepted(tuple(decisions.decisions_of_message(tx, owner, known)), True), None
        conversations.ensure_conversation(tx, owner, incoming.conversation)
        self._state = refreshed(tx, owner, self._state)
        context = routing_context(
            tx, self.core, self._state, incoming.conversation, incoming.asking, incoming.visible
        )
        stored = mask(text) if incoming.unstored else text
        targets, body = incoming.targets, stored
        if not targets and not incoming.raw:
            marks = self._router.addressed(stored, context)
            targets, body = marks.targets, marks.text
            if is_blank(body):
                raise InvalidInput("there is a project's name but no message; nothing was sent")
        typed = stored if body != stored else None
        full = self._router.addressed(text, context).text if typed else text
        made: list[str] = []
        parent = None
        if len(targets) > 1:
            parent = self._store(tx, incoming, stored, stored != text, None, None, text)
        for target in targets or (None,):
            message = self._store(
                tx, incoming, body, stored != text, typed, parent, full, child=parent is not None
            )
            attribution = self._attribute(incoming, body, target, context)
            made.append(self._decide(tx, message, incoming, attribution))
        views = tuple(decisions.decision_views(tx, owner, made))
        if self._wants_judge(incoming, views):
            return made, context
        return Accepted(views), None

    def _known(self, tx: Transaction, incoming: Incoming) -> str | None:
        owner = self.core.owner.id
        if incoming.event_id is not None:
            known = conversations.message_by_event(tx, owner, incoming.event_id)
            if known is not None:
                return known
        if incoming.platform_id is not None:
            return conversations.message_by_platform(
                tx, owner, incoming.platform, incoming.platform_id
            )
        return None

    def _store(
        self,
        tx: Transaction,
        incoming: Incoming,
        text: str,
        masked: bool,
        typed: str | None,
        parent: str | None,
        full: str,
        *,
        child: bool = False,
    ) -> str:
        message = self.core.ids.new("m")
        if masked:
            self.core.vault.texts[message] = full
        conversations.insert_message(
            tx,
            self.core.owner.id,
            NewMessage(
                id=message,
                conversation=incoming.conversation,
                text=text,
                parent=parent,
                event_id=None if child else incoming.event_id,
                platform=incoming.platform,
                platform_id=None if child else incoming.platform_id,
                masked=masked,
                raw=incoming.raw,
                typed=typed,
            ),
        )
        return message

    def _attribute(
        self, incoming: Incoming, text: str, target: Target | None, context: RoutingContext
    ) -> Attribution:
        if target is not None:
            stage = Stage.CHOSEN if incoming.targets else Stage.EXPLICIT
            reason = "you chose it" if incoming.targets else "you addressed it with @"
            return Attribution(stage, 1.0, reason, target, automatic=True)
        if incoming.shown is not None and incoming.shown.target is not None:
            return incoming.shown
        try:
            return self._router.preview(text, context)
        except Exception as error:  # a judge's fault must not lose the message
            return Attribution(
                Stage.JUDGEMENT, 0.0, f"attribution failed ({type(error).__name__}); please choose"
            )

    def _decide(
        self, tx: Transaction, message: str, incoming: Incoming, attribution: Attribution
    ) -> str:
        """Insert the decision: tentative where attribution may send it, else a card."""
        seen = incoming.shown is not None and incoming.shown.target is not None
        by_hand = attribution.stage in (Stage.EXPLICIT, Stage.CHOSEN)
        target, attribution = self._allowed(attribution, seen=seen or by_hand)
        decision = self.core.ids.new("d")
        state = DecisionState.TENTATIVE if target else DecisionState.WAITING_CONFIRMATION
        decisions.insert_decision(
            tx,
            self.core.owner.id,
            decision,
            message,
            state,
            attribution,
            target=target,
            weak_label=target is not None and not (seen or by_hand),
        )
        if target is not None:
            project = active_project(tx, self.core, target.project)
            enqueue(tx, self.core, decision, project, target.lane)
            if not incoming.raw:
                conversations.set_inertia(
                    tx, self.core.owner.id, incoming.conversation, target.project
                )
        return decision

    def _allowed(
        self, attribution: Attribution, *, seen: bool
    ) -> tuple[Target | None, Attribution]:
        """The target, if this attribution may send the message there; else None and why."""
        target = attribution.target
        if target is None:
            return None, attribution
        project = self._state.project(target.project)
        by_hand = attribution.stage in (Stage.EXPLICIT, Stage.CHOSEN)
        if project is None:
            if attribution.stage is Stage.CHOSEN:
                return target, attribution  # active_project says what is wrong with it
            reason = f"{target.project} was removed since it was shown; please choose"
            return None, _unsure(attribution, reason)
        if project.protected and not by_hand:
            reason = f"{project.name} is protected: only you can choose it"
            return None, _unsure(attribution, reason)
        sure = attribution.automatic and attribution.confidence >= self.core.settings.auto_at
        if not (seen or sure):
            return None, _unsure(attribution, attribution.reason)
        return target, attribution

    def _wants_judge(self, incoming: Incoming, views: Sequence[DecisionView]) -> bool:
        return (
            len(views) == 1
            and views[0].state is DecisionState.WAITING_CONFIRMATION
            and not incoming.raw
            and (incoming.shown is None or incoming.shown.target is None)
            and self._router.needs_judge(views[0].attribution)
        )

    async def _ask_judge(self, made: list[str], context: RoutingContext) -> Accepted:
        owner = self.core.owner.id
        (view,) = await self.core.store.read(lambda tx: decisions.decision_views(tx, owner, made))
        attribution = await self._router.decide(view.message.text, context)

        def work(tx: Transaction) -> Accepted:
            (now,) = decisions.decision_views(tx, owner, made)
            if now.state is DecisionState.WAITING_CONFIRMATION:
                self._state = refreshed(tx, owner, self._state)
                target, told = self._allowed(attribution, seen=False)
                decisions.explain_decision(tx, now.id, told)
                if target is not None:
                    give_target(tx, self.core, now, target, weak_label=True)
            return Accepted(tuple(decisions.decision_views(tx, owner, made)))

        return await self.core.store.write(work)

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
                if view.project == target.project and view.lane == target.lane:
                    return view
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
        """Take the last step back: a correction is corrected back, a sending withdrawn."""
        view = await self.core.store.read(lambda tx: self._find(tx, decision))
        if view.previous is not None and view.state is DecisionState.TENTATIVE:
            previous = view.previous
            before = await self.core.store.read(lambda tx: self._find(tx, previous))
            if before.project is not None:
                return await self.correct(view.id, Target(before.project, before.lane))
        return await self.withdraw(view.id)

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
                    deadline = tx.now if view.deadline is not None else None
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
                newest = sessions.newest_delivery(tx, view.id)
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
            newest = sessions.newest_delivery(tx, view.id)
            if newest is not None and newest.state is DeliveryState.UNKNOWN:
                error = "unknown; you sent it again"
                sessions.move_delivery(tx, newest, DeliveryState.FAILED, error=error)
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
            newest = sessions.newest_delivery(tx, view.id)
            if newest is None or newest.state is not DeliveryState.UNKNOWN:
                raise Conflict(f"the delivery of {view.id} is {view.delivery}, not unknown")
            sessions.move_delivery(tx, newest, DeliveryState.ANSWERED, proof="seen by the person")
            return self._find(tx, view.id)

        return await self.core.store.write(work)

    async def interrupt(self, decision: str) -> DecisionView:
        """Stop the running turn; the decision stays, the message can be sent again."""

        def work(tx: Transaction) -> DecisionView:
            view = self._tentative(tx, decision)
            newest = sessions.newest_delivery(tx, view.id)
            match newest.state if newest else None:
                case DeliveryState.PENDING | DeliveryState.RUNNING:
                    assert newest is not None
                    error = "stopped before it was sent"
                    sessions.move_delivery(tx, newest, DeliveryState.CANCELLED, error=error)
                case DeliveryState.WRITTEN | DeliveryState.RECEIVED:
                    assert newest is not None
                    sessions.request_interrupt(tx, newest)
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
    ) -> list[DecisionView]:
        """The newest decisions, oldest of them first."""
        return await self.core.store.read(
            lambda tx: decisions.latest_decisions(
                tx,
                self.core.owner.id,
                limit=limit,
                states=states,
                project=project,
                conversation=conversation,
            )
        )

    async def writes_of(self, decision: str) -> list[tuple[int, str, str]]:
        """(ordinal, state, result) of a decision's write tasks, for explanations."""
        rows = await self.core.store.read(lambda tx: memories.write_task_results(tx, decision))
        return [(ordinal, str(state), result) for ordinal, state, result in rows]

    # -- drafts

    async def save_draft(self, conversation: str, text: str, target: str | None = None) -> None:
        """Keep what stands in the entry; credentials are masked."""
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


def _unsure(attribution: Attribution, reason: str) -> Attribution:
    target = attribution.target
    candidates = attribution.candidates
    if target is not None and all(each.project != target.project for each in candidates):
        first = Candidate(target.project, attribution.confidence, attribution.reason)
        candidates = (first, *candidates)
    return replace(attribution, target=None, automatic=False, candidates=candidates, reason=reason)


def _state_words(view: DecisionView) -> str:
    match view.state:
        case DecisionState.WAITING_CONFIRMATION:
            return "waiting for your choice"
        case DecisionState.CORRECTED:
            return "corrected"
        case _:
            return f"{view.state.lower()} in {view.project}" if view.project else view.state.lower()


__all__ = ["Accepted", "Corrected", "DelegatedService", "Incoming", "Withdrawn"]
