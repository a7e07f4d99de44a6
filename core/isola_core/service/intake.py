"""Intake: a message is stored, attributed, and put into the outbox or on a card.

One transaction does all of it; a second one follows only where an external judge had to be asked in
between, so that the message is stored before a judge sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.router import Router
from isola_core.errors import InvalidInput
from isola_core.model import (
    Attribution,
    Candidate,
    DecisionState,
    DecisionView,
    Project,
    Stage,
    Target,
)
from isola_core.secrets import mask, refuse_secrets
from isola_core.service.outbox import active_project, enqueue, give_target
from isola_core.service.routing import RoutingState, refreshed, routing_context
from isola_core.service.settings import MESSAGE_LIMIT, Core
from isola_core.store import conversations, decisions
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
    `urgent` stops the turn that the session is running and goes before what waits there.
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
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class _Text:
    """One message's text: to be stored, as typed where that differs, and in full."""

    stored: str
    typed: str | None
    full: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The decisions about an accepted message; `duplicate`: it had been accepted before."""

    decisions: tuple[DecisionView, ...]
    duplicate: bool = False


class Intake:
    """Takes messages in, for one person and one process."""

    def __init__(self, core: Core, router: Router) -> None:
        self._core = core
        self._router = router
        self._state = RoutingState()
        self._contexts: dict[str, RoutingContext] = {}

    # -- what attribution keeps in memory

    async def refresh(self, conversation: str) -> None:
        """Bring what `preview` uses up to date; called at start and when the store changed."""

        def work(tx: Transaction) -> tuple[RoutingState, RoutingContext]:
            state = refreshed(tx, self._core.owner.id, self._state, counts=True)
            return state, routing_context(tx, self._core, state, conversation)

        self._state, self._contexts[conversation] = await self._core.store.read(work)

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
        text = checked_text(incoming.text)
        if not incoming.unstored:
            refuse_secrets(text)
        names = {
            "conversation": incoming.conversation,
            "event_id": incoming.event_id,
            "platform": incoming.platform,
            "platform_id": incoming.platform_id,
        }
        for field, name in names.items():
            refuse_secrets(name or "", field)

        def work(tx: Transaction) -> tuple[Accepted | list[str], RoutingContext | None]:
            return self._accept(tx, incoming, text)

        result, context = await self._core.store.write(work)
        if isinstance(result, Accepted):
            return result
        assert context is not None
        return await self._ask_judge(result, context)

    def _accept(
        self, tx: Transaction, incoming: Incoming, text: str
    ) -> tuple[Accepted | list[str], RoutingContext | None]:
        owner = self._core.owner.id
        known = self._known(tx, incoming)
        if known is not None:
            return Accepted(tuple(decisions.decisions_of_message(tx, owner, known)), True), None
        conversations.ensure_conversation(tx, owner, incoming.conversation)
        self._state = refreshed(tx, owner, self._state)
        context = RoutingContext(projects=self._state.projects)
        stored = mask(text) if incoming.unstored else text
        targets, body = incoming.targets, stored
        if not targets and not incoming.raw:
            marks = self._router.addressed(stored, context)
            targets, body = marks.targets, marks.text
            if is_blank(body):
                raise InvalidInput("there is a project's name but no message; nothing was sent")
        if not targets:
            context = routing_context(
                tx,
                self._core,
                self._state,
                incoming.conversation,
                incoming.asking,
                incoming.visible,
            )
        said = _Text(body, None, text)
        if body != stored:
            said = _Text(body, stored, self._router.addressed(text, context).text)
        made: list[str] = []
        parent = None
        if len(targets) > 1:
            parent = self._store(tx, incoming, _Text(stored, None, text))
        for target in targets or (None,):
            message = self._store(tx, incoming, said, parent)
            attribution = self._attribute(incoming, body, target, context)
            made.append(self._decide(tx, message, incoming, attribution))
        views = tuple(decisions.decision_views(tx, owner, made))
        if self._wants_judge(incoming, views):
            return made, context
        return Accepted(views), None

    def _known(self, tx: Transaction, incoming: Incoming) -> str | None:
        owner = self._core.owner.id
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
        self, tx: Transaction, incoming: Incoming, text: _Text, parent: str | None = None
    ) -> str:
        message = self._core.ids.new("m")
        masked = incoming.unstored and text.stored != text.full
        if masked:
            self._core.vault.texts[message] = text.full
        conversations.insert_message(
            tx,
            self._core.owner.id,
            NewMessage(
                id=message,
                conversation=incoming.conversation,
                text=text.stored,
                parent=parent,
                event_id=None if parent else incoming.event_id,
                platform=incoming.platform,
                platform_id=None if parent else incoming.platform_id,
                masked=masked,
                raw=incoming.raw,
                typed=text.typed,
            ),
        )
        return message

    def _attribute(
        self, incoming: Incoming, text: str, target: Target | None, context: RoutingContext
    ) -> Attribution:
        shown = incoming.shown.target if incoming.shown else None
        if target is not None:
            stage = Stage.CHOSEN if incoming.targets else Stage.EXPLICIT
            reason = "you chose it" if incoming.targets else "you addressed it with @"
            found = Attribution(stage, 1.0, reason, target, automatic=True)
            if shown in (None, target) or incoming.targets:
                return found
            return _unsure(found, f"{shown.project} was shown when you sent it; please choose")
        if incoming.shown is not None and shown is not None:
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
        decision = self._core.ids.new("d")
        state = DecisionState.TENTATIVE if target else DecisionState.WAITING_CONFIRMATION
        decisions.insert_decision(
            tx,
            self._core.owner.id,
            decision,
            message,
            state,
            attribution,
            target=target,
            weak_label=target is not None and not (seen or by_hand),
        )
        if target is not None:
            project = self._state.project(target.project)
            if project is None:  # says whether it is unknown or retired
                project = active_project(tx, self._core, target.project)
            enqueue(tx, self._core, decision, project, target.lane, urgent=incoming.urgent)
            if not incoming.raw:
                conversations.set_inertia(
                    tx, self._core.owner.id, incoming.conversation, target.project
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
        sure = attribution.automatic and attribution.confidence >= self._core.settings.auto_at
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
        owner = self._core.owner.id
        (view,) = await self._core.store.read(lambda tx: decisions.decision_views(tx, owner, made))
        attribution = await self._router.decide(view.message.text, context)

        def work(tx: Transaction) -> Accepted:
            (now,) = decisions.decision_views(tx, owner, made)
            if now.state is DecisionState.WAITING_CONFIRMATION:
                self._state = refreshed(tx, owner, self._state)
                target, told = self._allowed(attribution, seen=False)
                decisions.explain_decision(tx, now.id, told)
                if target is not None:
                    give_target(tx, self._core, now, target, weak_label=True)
            return Accepted(tuple(decisions.decision_views(tx, owner, made)))

        return await self._core.store.write(work)


def checked_text(text: str) -> str:
    """The text in its normal form.

    Raises:
        InvalidInput: blank, or over 4 MiB.
    """
    found = normalise_message(text)
    if is_blank(found):
        raise InvalidInput("the message is blank; nothing was sent")
    size = len(found.encode())
    if size > MESSAGE_LIMIT:
        raise InvalidInput(
            f"the message has {size:,} bytes, at most {MESSAGE_LIMIT:,} can be sent; nothing "
            "was sent. Put long material into a file of the project and name the file."
        )
    return found


def _unsure(attribution: Attribution, reason: str) -> Attribution:
    target = attribution.target
    candidates = attribution.candidates
    if target is not None and all(each.project != target.project for each in candidates):
        first = Candidate(target.project, attribution.confidence, attribution.reason)
        candidates = (first, *candidates)
    return replace(attribution, target=None, automatic=False, candidates=candidates, reason=reason)
