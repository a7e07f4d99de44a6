"""What the core needs from outside, as protocols: time, ids, processes, harnesses, judges.

The implementations live in `isola_harnesses` (backends, judges) and in the front ends. Nothing here
does I/O. The harness contract follows the source document: `ensure_session`, `dispatch`,
`reset_session`; everything more is a capability, a protocol of its own that a harness may also
implement and that the dispatcher asks for with `isinstance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from isola_core.model import Candidate, Project


class Clock(Protocol):
    """The one clock. Everything that waits or stores a time asks it."""

    def now(self) -> int:
        """UTC milliseconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a test's clock returns when the test says so."""
        ...


class Ids(Protocol):
    """Makes text ids: a prefix, a hyphen and random base32, such as `d-3k9x0v7mq2pt`."""

    def new(self, prefix: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, told apart from a later one with the same pid.

    `started` is milliseconds of a clock that does not jump (on Linux: since boot); it is compared,
    never shown.
    """

    machine: str
    boot: str
    pid: int
    started: int


class Processes(Protocol):
    """Who we are, and whether somebody else is still alive."""

    def me(self) -> ProcessIdentity: ...

    def alive(self, process: ProcessIdentity) -> bool | None:
        """True or False for a process of this machine and boot; None where it cannot be known."""
        ...


@dataclass(frozen=True, slots=True)
class SessionRef:
    """A project's conversation with one backend.

    `key` is `proj:<id>` or `proj:<id>:<lane>`; with `generation` it names one history.
    `backend_id` is the backend's own id once it is known, `cwd` the resolved folder of the project.
    """

    id: str
    project: str
    key: str
    generation: int
    lane: str = ""
    backend_id: str | None = None
    cwd: Path | None = None
    account: str = ""


@dataclass(frozen=True, slots=True)
class QuotedContext:
    """Text of this project only that goes in front of a message, marked as quoted context.

    `memories` are recalled memories, `briefing` what a fresh session must know. Both are data.
    `sources` are the ids of what is quoted: of the memories, and of the briefing's decisions.
    """

    memories: tuple[str, ...] = ()
    briefing: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way into a session. `delivery` is unique for each attempt."""

    delivery: str
    message: str
    text: str
    context: QuotedContext = QuotedContext()
    raw: bool = False


class FailureKind(StrEnum):
    """Why a turn failed, where the backend says so."""

    ERROR = "error"
    CANCELLED = "cancelled"
    RATE_LIMITED = "rate-limited"
    AUTH_EXPIRED = "auth-expired"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one dispatch came to, the source document's `{ok, reply, turn_id, meta}`.

    With `ok` False, `reply` is empty: error text is never a reply; it stands in `error`, and
    `written` says whether the text may have reached the backend's history (True when in doubt).
    `received` False means that the backend cannot prove that it got exactly this text: the delivery
    becomes UNKNOWN. `meta` holds the backend's own diagnostics. `backend_id` is set when the
    backend's session id is new or has changed.
    """

    ok: bool
    reply: str = ""
    turn_id: str = ""
    meta: Mapping[str, object] = field(default_factory=dict)
    error: str = ""
    failure: FailureKind | None = None
    written: bool = True
    received: bool = True
    backend_id: str | None = None


class SessionState(StrEnum):
    """How a session is, by evidence. Absence of evidence is UNKNOWN, never IDLE."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    NEEDS_USER = "needs_user"
    RATE_LIMITED = "rate_limited"
    AUTH_EXPIRED = "auth_expired"
    FAILED = "failed"
    UNKNOWN = "unknown"
    ASLEEP = "asleep"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """The answer of `ensure_session`: the state, the reference to use from now on, and why."""

    session: SessionRef
    state: SessionState
    detail: str = ""


@runtime_checkable
class Harness(Protocol):
    """The adapter to one kind of backend. One instance serves all sessions of its configuration.

    The dispatcher gives a harness one message of a session at a time. Methods may raise
    `HarnessError`; anything else that escapes is treated as a failed turn whose text may have
    been written.
    """

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        """Prepare or reuse the backend's session; never send anything."""
        ...

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        """Send one message, wait for the end of its turn. Cancelling the task ends the turn."""
        ...

    async def reset_session(self, session: SessionRef) -> SessionRef:
        """A new generation with an empty history; the backend's old one is kept."""
        ...

    async def close(self) -> None:
        """Let go of everything (children, connections). Called once."""
        ...


class TurnEventKind(StrEnum):
    """What happens inside a turn. RECEIVED carries the backend's proof of receipt."""

    RECEIVED = "received"
    TEXT = "text"
    TOOL = "tool"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One thing that happened in a turn; `text` of TEXT is the next fragment of the reply."""

    kind: TurnEventKind
    text: str = ""


Sink = Callable[[TurnEvent], None]
"""Takes turn events; it never blocks and never raises."""


@runtime_checkable
class Streams(Protocol):
    """Capability: the reply arrives in pieces."""

    async def dispatch_streaming(
        self, session: SessionRef, message: Outgoing, sink: Sink
    ) -> TurnResult:
        """`dispatch`, telling `sink` what happens on the way."""
        ...


@runtime_checkable
class Interrupts(Protocol):
    """Capability: a running turn can be stopped without ending the session."""

    async def interrupt(self, session: SessionRef) -> None:
        """Ask the running turn to end; its `dispatch` returns CANCELLED. No turn: no effect."""
        ...


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn to be forgotten: what was sent, and the backend's id of it where one is known."""

    delivery: str
    turn_id: str
    text: str
    context: QuotedContext = QuotedContext()


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a rewind did.

    `replaced` False: the turn is gone and later turns stay. True: a fresh session took over
    (`session` is the one to use from now on). `note` tells the person which and why; `kept_changes`
    lists files that the turn had changed and that stay changed.
    """

    session: SessionRef
    replaced: bool
    note: str = ""
    kept_changes: tuple[str, ...] = ()


@runtime_checkable
class Rewinds(Protocol):
    """Capability: a session can forget one turn. Without it the core resets the session."""

    async def rewind(self, session: SessionRef, turn: TurnRef) -> Rewound: ...


@dataclass(frozen=True, slots=True)
class Effects:
    """What a turn did outside its session's history, which nobody takes back.

    `files` were changed; `note` tells of anything else, "" of nothing.
    """

    files: tuple[str, ...] = ()
    note: str = ""


@runtime_checkable
class Recounts(Protocol):
    """Capability: the backend's own record tells what a turn did outside it."""

    async def effects(self, session: SessionRef, turn: TurnRef) -> Effects: ...


@runtime_checkable
class Rebuilds(Protocol):
    """Capability: a session is the store's history (`History`) and nothing else.

    Quoted context goes out with its own message only, so that nothing of it has to be forgotten.
    """

    rebuilds_history: bool


@runtime_checkable
class Holds(Protocol):
    """Capability: the backend's process belongs to us while it lives, so we keep the lease."""

    def holds(self, session: SessionRef) -> bool:
        """Whether something of this session is alive in this process."""
        ...


class ReceiptState(StrEnum):
    """What the backend's own record says about a message that was on its way when we died."""

    ABSENT = "absent"
    RECEIVED = "received"
    ANSWERED = "answered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof: `reply` is set with ANSWERED."""

    state: ReceiptState
    reply: str = ""
    turn_id: str = ""
    proof: str = ""


@runtime_checkable
class Confirms(Protocol):
    """Capability: the backend's own record can prove whether a message arrived."""

    async def confirm(self, session: SessionRef, message: Outgoing) -> Receipt: ...


DENY: Final = "deny"
"""The answer that every question offers: the agent is refused and may go on without."""

OTHER: Final = "other"
"""Where a question offers it: an answer in the person's own words."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something an agent asks its person inside a turn: a permission, or a choice.

    `id` is unique within the session. `choices` are (answer id, label) pairs, `DENY` among them;
    `detail` shows the tool's input as text for a person to read. Untrusted text throughout.
    """

    id: str
    title: str
    detail: str
    choices: tuple[tuple[str, str], ...]
    tool: str = ""


@runtime_checkable
class Asks(Protocol):
    """Capability: the agent asks while it works.

    `set_listener` is called once: `listener(session, questions)` gets the open questions of a
    session whenever they change (empty when all are answered or gone).
    """

    def set_listener(
        self, listener: Callable[[SessionRef, tuple[Question, ...]], None]
    ) -> None: ...

    async def answer(self, session: SessionRef, question: str, choice: str, text: str = "") -> None:
        """Answer one open question; an unknown one raises `NotFound`."""
        ...


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One finished turn of a session as the store holds it; excised turns are never returned."""

    delivery: str
    sent: str
    reply: str
    started: int
    decision: str = ""


class History(Protocol):
    """A session's finished, not excised turns, for backends that keep no history of their own."""

    async def turns(self, session: SessionRef) -> Sequence[PastTurn]: ...


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """What a judge may see: the text, the projects, the conversation's last attributed messages.

    `recent` holds (project id, text) pairs, oldest first. Never a memory, never a secret.
    """

    text: str
    projects: tuple[Project, ...]
    recent: tuple[tuple[str, str], ...] = ()
    current: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's answer: candidates best first, confidences in [0, 1].

    `decides` False means that it proposes only, whatever its confidence.
    """

    candidates: tuple[Candidate, ...]
    new_project: bool = False
    decides: bool = True
    reason: str = ""


class JudgeModel(Protocol):
    """A judge that asks a model or a process. Slow, down or nonsense raises `JudgeError`."""

    name: str

    async def judge(self, question: JudgeQuestion) -> Judgement: ...

    async def close(self) -> None: ...


def next_generation(session: SessionRef) -> SessionRef:
    """The same session with an empty history to come."""
    return replace(session, generation=session.generation + 1, backend_id=None)
