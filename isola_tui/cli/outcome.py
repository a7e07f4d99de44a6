"""What became of one message: the object that `chat` and `confirm` print, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from isola_core.errors import IsolaError
from isola_core.model import DecisionState, DecisionView, DeliveryState
from isola_core.ports import FailureKind
from isola_tui.cli.invocation import EXIT_FAILED, EXIT_NEEDS_CONFIRMATION, print_json
from isola_tui.cli.output import (
    Json,
    Names,
    block,
    candidates_json,
    first_line,
    line,
    note,
    show,
)


class Status(StrEnum):
    """How sending one message ended, for this command."""

    ANSWERED = "answered"
    SENT = "sent"
    """In the outbox or on its way: the answer was not waited for."""
    NEEDS_CONFIRMATION = "needs_confirmation"
    FAILED = "failed"
    RATE_LIMITED = "rate_limited"
    """The backend answers nothing for a while; the message can be sent again then."""
    AUTH_EXPIRED = "auth_expired"
    """The person must log in to the backend again."""
    UNKNOWN = "unknown"
    DUPLICATE = "duplicate"
    """This event had brought the message before; nothing was sent again."""


BAD: Final = frozenset({Status.FAILED, Status.RATE_LIMITED, Status.AUTH_EXPIRED, Status.UNKNOWN})
"""No answer came, and none comes by itself."""


def status_of(view: DecisionView, *, duplicate: bool = False) -> Status:
    """The status of one decision about a message."""
    if duplicate:
        return Status.DUPLICATE
    if view.state is DecisionState.WAITING_CONFIRMATION:
        return Status.NEEDS_CONFIRMATION
    if view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN):
        return Status.FAILED
    match view.delivery:
        case DeliveryState.ANSWERED:
            return Status.ANSWERED
        case DeliveryState.FAILED if view.failure == FailureKind.RATE_LIMITED:
            return Status.RATE_LIMITED
        case DeliveryState.FAILED if view.failure == FailureKind.AUTH_EXPIRED:
            return Status.AUTH_EXPIRED
        case DeliveryState.FAILED | DeliveryState.CANCELLED:
            return Status.FAILED
        case DeliveryState.UNKNOWN:
            return Status.UNKNOWN
        case _:
            return Status.SENT


def exit_code(statuses: Sequence[Status]) -> int:
    """The exit code for messages that ended like this: the worst one's."""
    if any(each in BAD for each in statuses):
        return EXIT_FAILED
    return EXIT_NEEDS_CONFIRMATION if Status.NEEDS_CONFIRMATION in statuses else 0


def outcome_json(view: DecisionView, status: Status, questions: Sequence[Json] = ()) -> Json:
    """The object for one decision; every key is always there.

    `questions` are what the agent asked in its turn, each with the answer that it got.
    """
    return {
        "status": status.value,
        "state": view.state.value,
        "project": view.project,
        "lane": view.lane,
        "confidence": round(view.attribution.confidence, 4),
        "stage": view.attribution.stage.value,
        "reason": view.attribution.reason,
        "decision_id": view.id,
        "message_id": view.message.id,
        "conversation": view.message.conversation,
        "reply": view.reply,
        "candidates": candidates_json(view.attribution),
        "questions": list(questions),
        "error": _error(view, status),
    }


def refused_json(error: IsolaError, conversation: str) -> Json:
    """The object for a message that was refused before anything was stored."""
    return {
        "status": Status.FAILED.value,
        "state": None,
        "project": None,
        "lane": "",
        "confidence": 0.0,
        "stage": None,
        "reason": "",
        "decision_id": None,
        "message_id": None,
        "conversation": conversation,
        "reply": "",
        "candidates": [],
        "questions": [],
        "error": {"code": error.code, "message": error.message, "details": error.details},
    }


def _error(view: DecisionView, status: Status) -> Json | None:
    match status:
        case Status.FAILED:
            if view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN):
                code = view.state.value.lower()
            else:
                stopped = view.delivery is DeliveryState.CANCELLED
                code = "delivery_stopped" if stopped else "delivery_failed"
        case Status.RATE_LIMITED | Status.AUTH_EXPIRED:
            code = status.value
        case Status.UNKNOWN:
            code = "delivery_unknown"
        case _:
            return None
    message = view.delivery_error or f"the message was {code}"
    return {"code": code, "message": message, "details": {"next": _next_step(view)}}


def _next_step(view: DecisionView) -> str:
    if view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN):
        return f"isola explain decision {view.id}"
    if view.delivery is DeliveryState.UNKNOWN:
        return f"isola resolve {view.id} --resend|--arrived"
    return f"isola resolve {view.id} --resend"


def print_outcome(
    view: DecisionView,
    status: Status,
    names: Names,
    *,
    as_json: bool,
    questions: Sequence[Json] = (),
) -> None:
    """Print one decision about a message, with its reply; `questions` as for `outcome_json`."""
    if as_json:
        print_json(outcome_json(view, status, questions))
        return
    if status is Status.NEEDS_CONFIRMATION:
        print_card(view, names)
        return
    about = view.attribution
    again = " (had come before; nothing was sent again)" if status is Status.DUPLICATE else ""
    target = names.target(view)
    show(f"→ {target}  {about.confidence:.2f} {about.stage}  {view.id}{again}")
    if view.state in (DecisionState.CORRECTED, DecisionState.WITHDRAWN):
        note(f"isola: it was {view.state.lower()} meanwhile; `{_next_step(view)}` says more")
        return
    match view.delivery:
        case DeliveryState.ANSWERED:
            show(block(view.reply) if view.reply else "(an empty answer)")
        case DeliveryState.FAILED | DeliveryState.CANCELLED:
            note(f"isola: {target} {_ending(status, view)}: {line(view.delivery_error, 2_000)}")
            first = {
                Status.RATE_LIMITED: " once the limit has ended",
                Status.AUTH_EXPIRED: " once you are logged in",
            }.get(status, "")
            note(f"isola: your message is stored; `{_next_step(view)}` sends it again{first}")
        case DeliveryState.UNKNOWN:
            note(f"isola: it is unknown whether it arrived: {line(view.delivery_error, 2_000)}")
            note(f"isola: look, then `{_next_step(view)}`")
        case None if view.state is DecisionState.WAITING_CONFIRMATION:
            note(f"isola: it waits for your choice: isola confirm {view.id} PROJECT")
        case _:
            note("isola: it is in the outbox; it goes on while any isola runs")


def _ending(status: Status, view: DecisionView) -> str:
    match status:
        case Status.RATE_LIMITED:
            return "has reached a limit"
        case Status.AUTH_EXPIRED:
            return "is not logged in any more"
        case _:
            return "stopped" if view.delivery is DeliveryState.CANCELLED else "failed"


def print_card(view: DecisionView, names: Names) -> None:
    """Print a card: the message, the candidates by number, and how to choose."""
    show(f'? which project?  "{first_line(view.message.text)}"  {view.id}')
    show(f"  {line(view.attribution.reason, 300)}")
    for number, each in enumerate(view.attribution.candidates, 1):
        reason = line(each.reason, 120)
        show(f"  {number}  {names.of(each.project)}  {each.confidence:.2f}  {reason}".rstrip())
    if view.attribution.new_project:
        show("  it may be the start of a new project: isola projects add NAME")
    show(f"  choose: isola confirm {view.id} PROJECT")
