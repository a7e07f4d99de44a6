"""What a turn came to, in the words of the harness contract."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from isola_core.ports import FailureKind, TurnResult
from isola_harnesses.claude import stream

_TAIL: Final = 600


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ended outside its lines.

    `written` and `reply` are what the transcript says; they matter where there was no result.
    """

    returncode: int | None
    stderr: str
    timed_out: bool
    written: bool = True
    reply: str | None = None


def never_sent(turn: stream.Turn, backend_id: str) -> TurnResult:
    """The turn was interrupted while its child was still being started."""
    return TurnResult(
        ok=False,
        turn_id=turn.uuid,
        error="The turn was interrupted before the message was sent.",
        failure=FailureKind.CANCELLED,
        written=False,
        received=False,
        backend_id=backend_id,
    )


def with_result(
    turn: stream.Turn, meta: dict[str, object], end: End, backend_id: str
) -> TurnResult:
    """The child told how the turn ended."""
    ended = stream.outcome(turn)
    if end.timed_out and ended.failure is FailureKind.CANCELLED:
        error = "The turn took longer than it may (timeout_s) and was interrupted."
        ended = stream.Outcome(failure=FailureKind.TIMED_OUT, error=error)
    if advice := _advice(turn, ended.failure):
        ended = replace(ended, error=f"{ended.error.rstrip()} ({advice})")
    if ended.failure is not None and end.stderr:
        meta["stderr"] = end.stderr
    return TurnResult(
        ok=ended.failure is None,
        reply=ended.reply,
        turn_id=turn.uuid,
        meta=meta,
        error=ended.error,
        failure=ended.failure,
        # A command is not kept as it was typed; that the result names our uuid proves it.
        received=turn.received or turn.raw,
        backend_id=backend_id,
    )


def without_result(
    turn: stream.Turn, meta: dict[str, object], end: End, backend_id: str
) -> TurnResult:
    """The child ended, or it knew the message already: its own record says what happened."""
    exited = end.returncode is not None
    if turn.received and not exited and not turn.interrupted and end.reply is not None:
        return TurnResult(
            ok=True, reply=end.reply, turn_id=turn.uuid, meta=meta, backend_id=backend_id
        )
    if end.stderr:
        meta["stderr"] = end.stderr
    failure = FailureKind.ERROR
    if end.timed_out:
        failure = FailureKind.TIMED_OUT
        error = "The turn took longer than it may (timeout_s); Claude Code was ended."
    elif turn.interrupted:
        failure = FailureKind.CANCELLED
        error = "The turn was interrupted."
    elif not exited:
        error = "Claude Code took the message and ended its turn without a result."
    else:
        error = f"Claude Code ended in the middle of the turn ({_status(end.returncode)})."
        said = [stream.error_text(each) for each in turn.others if each.get("is_error")]
        if end.stderr or any(said):
            error += f" It said: {(end.stderr or said[-1])[-_TAIL:]}"
    return TurnResult(
        ok=False,
        turn_id=turn.uuid,
        meta=meta,
        error=error,
        failure=failure,
        written=end.written or not exited,
        received=turn.received,
        backend_id=backend_id,
    )


def _advice(turn: stream.Turn, failure: FailureKind | None) -> str:
    """What the person can do about a failure that is not the message's fault."""
    match failure:
        case FailureKind.AUTH_EXPIRED:
            return "log in again with `claude auth login`, or renew the key"
        case FailureKind.RATE_LIMITED:
            resets = (turn.limits or {}).get("resetsAt")
            with contextlib.suppress(TypeError, ValueError, OverflowError, OSError):
                at = datetime.fromtimestamp(float(str(resets)), UTC)
                return f"the limit ends at {at:%Y-%m-%d %H:%M} UTC"
            return "wait until the limit ends"
        case _:
            return ""


def _status(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"signal {-returncode}"
    return f"exit status {returncode}"
