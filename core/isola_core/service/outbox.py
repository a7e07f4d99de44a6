"""Inside a transaction: give a decision its target, or take a decision back."""

from __future__ import annotations

from dataclasses import dataclass

from isola_core.attribution.words import WordCounts
from isola_core.errors import Conflict, NotFound
from isola_core.model import (
    LIVE_DELIVERIES,
    DecisionState,
    DecisionView,
    DeliveryState,
    Project,
    Target,
    WriteTaskState,
)
from isola_core.secrets import refuse_secrets
from isola_core.service.settings import Core
from isola_core.store import conversations, decisions, deliveries, memories, projects, sessions
from isola_core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Undone:
    """What taking a decision back did. Counts of rows; `delivery` is its state before."""

    delivery: DeliveryState | None = None
    stopped_before_delivery: bool = False
    interrupting: bool = False
    rewinding: bool = False
    cancelled_writes: int = 0
    retired_memories: tuple[str, ...] = ()


def active_project(tx: Transaction, core: Core, project: str) -> Project:
    """A registered project that is not retired.

    Raises:
        NotFound: there is none with this id.
        Conflict: it is retired.
    """
    found = projects.find_project(tx, core.owner.id, project)
    if found is None:
        raise NotFound(f"there is no project {project!r}; `isola projects list` shows them")
    if found.retired:
        raise Conflict(
            f"project {found.name} is retired; `isola projects edit {found.id} --restore` "
            "brings it back"
        )
    return found


def enqueue(
    tx: Transaction,
    core: Core,
    decision: str,
    project: Project,
    lane: str,
    *,
    urgent: bool = False,
) -> None:
    """Put the first attempt of a tentative decision into the outbox, with its write task.

    An urgent one stops the session's running turn and goes before everything that waits.
    """
    session = _session_for(tx, core, project, lane)
    if urgent:
        for delivery in deliveries.open_deliveries(tx, session):
            if delivery.state in (DeliveryState.WRITTEN, DeliveryState.RECEIVED):
                deliveries.request_interrupt(tx, delivery)
    deliveries.insert_delivery(tx, core.ids.new("l"), decision, session, 1, urgent=urgent)
    memories.insert_write_task(tx, decision, 0, None, None)


def _session_for(tx: Transaction, core: Core, project: Project, lane: str) -> str:
    harness = core.harness_of(project)
    found = sessions.find_session(tx, core.owner.id, core.machine, project.id, lane)
    if found is None:
        refuse_secrets(lane, "lane")
        session = core.ids.new("s")
        sessions.insert_session(
            tx, core.owner.id, core.machine, session, project.id, lane, harness, project.path
        )
        return session
    cwd = str(found.ref.cwd) if found.ref.cwd else None
    if (found.harness, cwd) != (harness, project.path):
        sessions.retarget_session(tx, found.ref.id, harness, project.path)
    return found.ref.id


def follow_inertia(tx: Transaction, core: Core, conversation: str) -> None:
    """The conversation's last project is that of its newest message that has one."""
    newest = conversations.newest_attributed(tx, core.owner.id, conversation)
    if newest is None:
        conversations.clear_inertia(tx, core.owner.id, conversation)
    else:
        conversations.set_inertia(tx, core.owner.id, conversation, *newest)


def take_back(
    tx: Transaction, core: Core, view: DecisionView, state: DecisionState, reason: str
) -> Undone:
    """End an active decision as CORRECTED or WITHDRAWN and leave nothing of it behind.

    Stops an undelivered message, asks for the interrupt of a running turn, cancels waiting writes,
    retires memories, subtracts what the judge learned, and orders the rewind of what was written.
    """
    decisions.move_decision(tx, view, state)
    newest = deliveries.newest_delivery(tx, view.id)
    stopped = interrupting = rewinding = False
    for delivery in deliveries.deliveries_of(tx, view.id):
        if delivery.written is not None:
            deliveries.insert_rewind(tx, core.ids.new("r"), delivery)
            rewinding = True
        match delivery.state:
            case DeliveryState.PENDING | DeliveryState.RUNNING:
                deliveries.move_delivery(tx, delivery, DeliveryState.CANCELLED, error=reason)
                stopped = True
            case DeliveryState.WRITTEN | DeliveryState.RECEIVED:
                deliveries.request_interrupt(tx, delivery)
                interrupting = True
            case DeliveryState.UNKNOWN:
                deliveries.move_delivery(tx, delivery, DeliveryState.CANCELLED, error=reason)
            case _:
                pass
    waiting = memories.open_write_tasks(tx, view.id)
    for task in waiting:
        memories.move_write_task(tx, task, WriteTaskState.CANCELLED, reason)
    retired = memories.retire_by_source(tx, view.id, reason)
    if newest is not None and view.project is not None:
        told = deliveries.quoting_sessions(tx, core.owner.id, view.project, {view.id, *retired})
        for session in told:
            deliveries.insert_rewind(tx, core.ids.new("r"), newest, session)
            rewinding = True
    _unlearn(tx, core, view)
    memories.audit(tx, core.owner.id, "user", state.lower(), view.id, reason)
    return Undone(
        delivery=newest.state if newest else None,
        stopped_before_delivery=stopped,
        interrupting=interrupting,
        rewinding=rewinding,
        cancelled_writes=len(waiting),
        retired_memories=tuple(retired),
    )


def _unlearn(tx: Transaction, core: Core, view: DecisionView) -> None:
    if view.project is None or not memories.is_learned(tx, view.id):
        return
    blobs = memories.judge_blobs(tx, core.owner.id, [view.project])
    counts = WordCounts.unpack(blobs[view.project])
    counts.subtract(view.message.text)
    memories.save_judge_blobs(tx, core.owner.id, {view.project: counts.pack()})
    memories.set_learned(tx, [view.id], learned=False)
    projects.bump_version(tx, "judge_version")


def give_target(
    tx: Transaction, core: Core, view: DecisionView, target: Target, *, weak_label: bool = False
) -> None:
    """A waiting decision gets its project: it becomes tentative and goes into the outbox."""
    project = active_project(tx, core, target.project)
    decisions.move_decision(tx, view, DecisionState.TENTATIVE, target=target, weak_label=weak_label)
    enqueue(tx, core, view.id, project, target.lane)
    follow_inertia(tx, core, view.message.conversation)


def new_attempt(tx: Transaction, core: Core, decision: str) -> None:
    """One more attempt for a tentative decision whose newest attempt has ended."""
    newest = deliveries.newest_delivery(tx, decision)
    assert newest is not None
    assert newest.state not in LIVE_DELIVERIES
    view = decisions.decision_views(tx, core.owner.id, [decision])[0]
    project = active_project(tx, core, newest.project)
    session = _session_for(tx, core, project, view.lane)
    deliveries.insert_delivery(tx, core.ids.new("l"), decision, session, newest.attempt + 1)
    if not view.held:
        decisions.set_window(tx, decision, None, held=False)
