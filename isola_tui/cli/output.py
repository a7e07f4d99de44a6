"""What commands print: the JSON shapes, and the same things as lines for people.

Every name, message and reply may hold anything, so all of it passes `line` (one printable line) or
`block` (lines without control characters) on its way to the terminal. There is no markup and no
colour. JSON keeps the text as it is stored; `print_json` escapes what a terminal would act on.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from isola_core.model import (
    Attribution,
    DecisionState,
    DecisionView,
    DeliveryState,
    MemoryView,
    Project,
    RewindState,
)
from isola_core.ports import FailureKind
from isola_core.service.outbox import Undone
from isola_core.text import normalise_message, safe_label

Json = dict[str, object]

LABEL_CELLS: Final = 60
"""How much of a message's first line stands beside a decision."""

_UNSEEN: Final = re.compile("[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


class Names:
    """Projects by id, retired ones too, so that answers call them what people call them."""

    def __init__(self, projects: Iterable[Project]) -> None:
        self._names = {each.id: each.name for each in projects}

    def of(self, project: str | None, lane: str = "") -> str:
        """`billing`, `billing/review`, or `-` for none."""
        if project is None:
            return "-"
        name = line(self._names.get(project, project), LABEL_CELLS)
        return f"{name}/{line(lane, LABEL_CELLS)}" if lane else name

    def target(self, view: DecisionView) -> str:
        """Where a decision sends its message."""
        return self.of(view.project, view.lane)


def show(text: str = "") -> None:
    """Print text for people; what the terminal's encoding lacks becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def note(text: str) -> None:
    """Print something beside the answer: on stderr, so that a pipe gets the answer alone."""
    encoding = sys.stderr.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), file=sys.stderr)


def line(text: str, limit: int = 200) -> str:
    """One printable line of at most `limit` characters."""
    return safe_label(text, limit)


def block(text: str, indent: str = "") -> str:
    """Lines without control or direction characters; nothing else of the text is lost."""
    kept = _UNSEEN.sub("", normalise_message(text)).expandtabs(8)
    return "\n".join(indent + each if each else each for each in kept.split("\n"))


def first_line(text: str, limit: int = LABEL_CELLS) -> str:
    """The first line with something in it, shortened."""
    lines = [line(each, limit) for each in text[:4_000].splitlines()]
    return next((each for each in lines if each), "")


def when(time_ms: int | None) -> str:
    """UTC milliseconds as the local time, to the second."""
    if time_ms is None:
        return "-"
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def length(time_ms: float) -> str:
    """A length of time: `4:05` minutes, `2 h`, `0.4 s`."""
    seconds = time_ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    return f"{seconds / 3600:.1f} h"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; where a terminal is narrower, the last column is cut."""
    lines = [list(header), *([*each] for each in rows)]
    widths = [max(_cells(each[column]) for each in lines) for column in range(len(header) - 1)]
    room = _width() - sum(widths) - 2 * len(widths)
    drawn = []
    for each in lines:
        cells = [
            text + " " * (width - _cells(text))
            for text, width in zip(each[:-1], widths, strict=True)
        ]
        drawn.append("  ".join([*cells, _cut(each[-1], max(room, 20))]).rstrip())
    return "\n".join(drawn)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 1_000


def _cells(text: str) -> int:
    return sum(_cell(each) for each in text)


def _cell(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _cut(text: str, cells: int) -> str:
    if _cells(text) <= cells:
        return text
    kept, used = [], 1
    for letter in text:
        used += _cell(letter)
        if used > cells:
            break
        kept.append(letter)
    return "".join(kept) + "…"


# -- JSON shapes, each documented in README


def project_json(project: Project) -> Json:
    """A project, as `projects` prints it."""
    return {
        "id": project.id,
        "name": project.name,
        "description": project.description,
        "aliases": list(project.aliases),
        "path": project.path,
        "harness": project.harness,
        "protected": project.protected,
        "retired": project.retired,
    }


def attribution_json(attribution: Attribution) -> Json:
    """Why: the stage, how sure, and what else it could have been."""
    runner_up = attribution.runner_up
    return {
        "stage": attribution.stage.value,
        "confidence": round(attribution.confidence, 4),
        "reason": attribution.reason,
        "judge": attribution.judge,
        "runner_up": None if runner_up is None else runner_up.project,
        "candidates": candidates_json(attribution),
        "referenced": list(attribution.referenced),
        "new_project": attribution.new_project,
        "latency_ms": round(attribution.latency_ms, 3),
    }


def candidates_json(attribution: Attribution) -> list[Json]:
    """The ranked projects of a card or an explanation."""
    return [
        {
            "project": each.project,
            "confidence": round(each.confidence, 4),
            "reason": each.reason,
        }
        for each in attribution.candidates
    ]


def decision_json(view: DecisionView) -> Json:
    """A decision, as `decisions`, `correct`, `withdraw`, `resolve` and `explain` print it."""
    return {
        "id": view.id,
        "message_id": view.message.id,
        "conversation": view.message.conversation,
        "text": view.message.text,
        "masked": view.message.masked,
        "state": view.state.value,
        "project": view.project,
        "lane": view.lane,
        **attribution_json(view.attribution),
        "created": view.created,
        "updated": view.updated,
        "deadline": view.deadline,
        "held": view.held,
        "previous": view.previous,
        "delivery": view.delivery.value if view.delivery else None,
        "attempt": view.attempt,
        "error": view.delivery_error,
        "failure": view.failure or None,
        "reply": view.reply,
        "replied": view.replied,
        "rewind": view.rewind.value if view.rewind else None,
        "rewind_note": view.rewind_note,
    }


def memory_json(memory: MemoryView) -> Json:
    """A memory, as `recall` prints it."""
    return {
        "id": memory.id,
        "scope": memory.scope,
        "kind": memory.kind.value,
        "durability": memory.durability,
        "content": memory.content,
        "created": memory.created,
        "score": round(memory.score, 6),
    }


def undone_json(undone: Undone) -> Json:
    """What taking a decision back did."""
    return {
        "delivery_was": undone.delivery.value if undone.delivery else None,
        "stopped_before_delivery": undone.stopped_before_delivery,
        "interrupting": undone.interrupting,
        "rewinding": undone.rewinding,
        "cancelled_writes": undone.cancelled_writes,
        "retired_memories": list(undone.retired_memories),
    }


# -- the same for people

_FAILED: Final[dict[str, str]] = {
    FailureKind.RATE_LIMITED: "failed: a limit is reached",
    FailureKind.AUTH_EXPIRED: "failed: not logged in any more",
}


def delivery_words(view: DecisionView) -> str:
    """How far the message got, in plain words."""
    match view.delivery:
        case None:
            return "not sent"
        case DeliveryState.PENDING:
            return "waiting in the outbox"
        case DeliveryState.RUNNING:
            return "about to be sent"
        case DeliveryState.WRITTEN:
            return "sent, not acknowledged yet"
        case DeliveryState.RECEIVED:
            return "received, no answer yet"
        case DeliveryState.ANSWERED:
            return "answered"
        case DeliveryState.FAILED:
            return _FAILED.get(view.failure, "failed")
        case DeliveryState.CANCELLED:
            return "stopped"
        case DeliveryState.UNKNOWN:
            return "unknown whether it arrived"


def state_words(view: DecisionView) -> str:
    """Where the decision stands, in one word."""
    if view.state is DecisionState.WAITING_CONFIRMATION:
        return "your choice"
    return view.state.value.lower()


def undone_lines(old: DecisionView, undone: Undone, names: Names) -> list[str]:
    """What was undone and, as plainly, what was not and cannot be."""
    project = names.target(old)
    done: list[str] = []
    left: list[str] = []
    if undone.stopped_before_delivery:
        done.append(f"it had not reached {project} and was stopped")
    if undone.interrupting:
        done.append(f"the turn running in {project} is asked to stop")
    match old.rewind:
        case RewindState.PENDING:
            done.append(
                f"{project}'s session forgets the turn before it gets anything else; what that "
                f"came to says `isola explain decision {old.id}`"
            )
        case RewindState.DONE:
            done.append(f"{project}'s session forgot the turn: {line(old.rewind_note, 10_000)}")
        case RewindState.REPLACED:
            done.append(f"{project} got a fresh session: {line(old.rewind_note, 10_000)}")
        case None:
            pass
    if undone.cancelled_writes:
        done.append("nothing of it will be remembered there")
    if retired := len(undone.retired_memories):
        done.append("a memory of it was retired" if retired == 1 else f"{retired} memories retired")
    if undone.rewinding:
        left.append(f"{project}'s backend did receive the text")
        left.append("files, commands and anything else its turn did stay as they are")
    lines = [f"  undone: {each}" for each in done] or ["  undone: nothing had been sent"]
    return lines + [f"  not undone: {each}" for each in left]


def mapping_lines(facts: Mapping[str, str]) -> str:
    """`name  value` lines, aligned."""
    width = max((_cells(each) for each in facts), default=0)
    return "\n".join(
        f"{name}{' ' * (width - _cells(name))}  {value}" for name, value in facts.items()
    )
