"""The words of Isola as types: states, transitions, and the rows that travel between the parts.

No I/O happens here. A state changes only along the tables at the end of this file; everything else
(constraints in the database, the services, the screens) follows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from isola_core.errors import IllegalTransition


class DecisionState(StrEnum):
    """Where one attribution of one message stands."""

    WAITING_CONFIRMATION = "WAITING_CONFIRMATION"
    TENTATIVE = "TENTATIVE"
    COMMITTED = "COMMITTED"
    CORRECTED = "CORRECTED"
    WITHDRAWN = "WITHDRAWN"


class DecisionMode(StrEnum):
    """Who acts on the decision: we dispatch (delegated), or the agent that asked does (service)."""

    DELEGATED = "delegated"
    SERVICE = "service"


class DeliveryState(StrEnum):
    """Where one attempt to hand a message to a session stands.

    WRITTEN is committed *before* the text is submitted: a crash never makes us submit twice.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WRITTEN = "WRITTEN"
    RECEIVED = "RECEIVED"
    ANSWERED = "ANSWERED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"


class WriteTaskState(StrEnum):
    """Where the write of one text into memory stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


class RewindState(StrEnum):
    """Whether the wrong session has forgotten a misrouted turn.

    REPLACED: the turn could not be taken out alone, a fresh session took over.
    """

    PENDING = "PENDING"
    DONE = "DONE"
    REPLACED = "REPLACED"


class MemoryState(StrEnum):
    """RETIRED memories leave every index; history keeps them."""

    ACTIVE = "ACTIVE"
    RETIRED = "RETIRED"


class MemoryKind(StrEnum):
    """What a memory is. EPISODE is history (a request); all but the open loops are durable else."""

    FACT = "fact"
    DECISION = "decision"
    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    CONVENTION = "convention"
    GOTCHA = "gotcha"
    REFERENCE = "reference"
    EPISODE = "episode"
    TASK = "task"
    OPEN_QUESTION = "open-question"


class Stage(StrEnum):
    """Which stage of attribution decided, cheapest first; CHOSEN is the person's own pick."""

    EXPLICIT = "explicit"
    REFERENCE = "reference"
    LOW_SIGNAL = "low-signal"
    JUDGEMENT = "judgement"
    CHOSEN = "chosen"


ACTIVE_DECISIONS: Final = frozenset(
    {DecisionState.WAITING_CONFIRMATION, DecisionState.TENTATIVE, DecisionState.COMMITTED}
)
"""At most one decision of a message is in one of these."""

LIVE_DELIVERIES: Final = frozenset(
    {DeliveryState.RUNNING, DeliveryState.WRITTEN, DeliveryState.RECEIVED}
)
"""At most one delivery of a session is in one of these."""

DECISION_TRANSITIONS: Final[dict[DecisionState, frozenset[DecisionState]]] = {
    DecisionState.WAITING_CONFIRMATION: frozenset(
        {DecisionState.TENTATIVE, DecisionState.COMMITTED, DecisionState.WITHDRAWN}
    ),
    DecisionState.TENTATIVE: frozenset(
        {DecisionState.COMMITTED, DecisionState.CORRECTED, DecisionState.WITHDRAWN}
    ),
    DecisionState.COMMITTED: frozenset({DecisionState.CORRECTED, DecisionState.WITHDRAWN}),
    DecisionState.CORRECTED: frozenset(),
    DecisionState.WITHDRAWN: frozenset(),
}
"""WAITING_CONFIRMATION -> COMMITTED is the service mode's, which dispatches nothing."""

_DELIVERY_END: Final = frozenset({DeliveryState.FAILED, DeliveryState.CANCELLED})
DELIVERY_TRANSITIONS: Final[dict[DeliveryState, frozenset[DeliveryState]]] = {
    DeliveryState.PENDING: frozenset({DeliveryState.RUNNING}) | _DELIVERY_END,
    DeliveryState.RUNNING: frozenset({DeliveryState.WRITTEN, DeliveryState.UNKNOWN})
    | _DELIVERY_END,
    DeliveryState.WRITTEN: frozenset(
        {DeliveryState.RECEIVED, DeliveryState.ANSWERED, DeliveryState.UNKNOWN}
    )
    | _DELIVERY_END,
    DeliveryState.RECEIVED: frozenset({DeliveryState.ANSWERED, DeliveryState.UNKNOWN})
    | _DELIVERY_END,
    DeliveryState.ANSWERED: frozenset(),
    DeliveryState.FAILED: frozenset(),
    DeliveryState.CANCELLED: frozenset(),
    DeliveryState.UNKNOWN: frozenset({DeliveryState.RECEIVED, DeliveryState.ANSWERED})
    | _DELIVERY_END,
}
"""UNKNOWN ends by the harness's proof or by the person, never by itself."""

WRITE_TASK_TRANSITIONS: Final[dict[WriteTaskState, frozenset[WriteTaskState]]] = {
    WriteTaskState.PENDING: frozenset({WriteTaskState.RUNNING, WriteTaskState.CANCELLED}),
    WriteTaskState.RUNNING: frozenset(
        {
            WriteTaskState.PENDING,
            WriteTaskState.DONE,
            WriteTaskState.CANCELLED,
            WriteTaskState.FAILED,
        }
    ),
    WriteTaskState.DONE: frozenset(),
    WriteTaskState.CANCELLED: frozenset(),
    WriteTaskState.FAILED: frozenset(),
}

REWIND_TRANSITIONS: Final[dict[RewindState, frozenset[RewindState]]] = {
    RewindState.PENDING: frozenset({RewindState.DONE, RewindState.REPLACED}),
    RewindState.DONE: frozenset(),
    RewindState.REPLACED: frozenset(),
}

MEMORY_TRANSITIONS: Final[dict[MemoryState, frozenset[MemoryState]]] = {
    MemoryState.ACTIVE: frozenset({MemoryState.RETIRED}),
    MemoryState.RETIRED: frozenset({MemoryState.ACTIVE}),
}

_State = TypeVar("_State", bound=StrEnum)


def check_transition(table: dict[_State, frozenset[_State]], old: _State, new: _State) -> None:
    """Raise `IllegalTransition` unless `table` allows `old` to become `new`."""
    if new not in table[old]:
        raise IllegalTransition(f"{type(old).__name__}: {old} cannot become {new}")


@dataclass(frozen=True, slots=True)
class Project:
    """One project as attribution, harnesses and screens see it.

    `id` is stable and unique per owner; `scope` is where its memories live. `path` is the real path
    of its folder or None. `harness` names one of the configuration's, None means the default one.
    """

    id: str
    name: str
    scope: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    path: str | None = None
    harness: str | None = None
    listed: bool = True
    protected: bool = False
    retired: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes: a project and, optionally, one of its lanes ("" is the main lane)."""

    project: str
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One project a message may belong to: confidence in [0, 1] and the reason in plain words."""

    project: str
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """What the pipeline says about one message.

    `target` is None when it is unsure: that becomes a card with `candidates` (best first, the
    chosen one included). `referenced` lists projects that were only mentioned. `new_project` says
    that the message looks like the start of something unregistered. `judge` names the judge of
    stage 3. `latency_ms` is wall time spent deciding. `automatic` says that the stage may send it
    without a person having seen the target first; a target without it is a proposal.
    """

    stage: Stage
    confidence: float
    reason: str
    target: Target | None = None
    automatic: bool = False
    candidates: tuple[Candidate, ...] = ()
    referenced: tuple[str, ...] = ()
    judge: str = ""
    new_project: bool = False
    latency_ms: float = 0.0

    @property
    def runner_up(self) -> Candidate | None:
        """The best candidate that is not the target, or None."""
        chosen = self.target.project if self.target else None
        return next((each for each in self.candidates if each.project != chosen), None)


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message as people see it; `text` is masked where the message was sent unstored."""

    id: str
    conversation: str
    text: str
    created: int
    masked: bool = False
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision with what a screen or a command needs beside it. Times are UTC milliseconds.

    `deadline` is None before the text was written to a session and while the window is held.
    `delivery` is the newest attempt's state or None; `failure` says why it failed, as one of
    `ports.FailureKind`, "" where nobody said; `reply` is the turn's answer (masked) or "".
    `rewind` is the state of the rewind of this decision's turn, None if it never needed one.
    """

    id: str
    message: MessageView
    mode: DecisionMode
    state: DecisionState
    project: str | None
    lane: str
    created: int
    updated: int
    deadline: int | None
    held: bool
    previous: str | None
    attribution: Attribution
    delivery: DeliveryState | None = None
    delivery_error: str = ""
    failure: str = ""
    attempt: int = 0
    reply: str = ""
    replied: int | None = None
    rewind: RewindState | None = None
    rewind_note: str = ""
    session: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One memory as recall returns it. `score` is comparable inside one answer only."""

    id: str
    scope: str
    kind: MemoryKind
    durability: str
    content: str
    created: int
    state: MemoryState = MemoryState.ACTIVE
    score: float = 0.0
    sources: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The scopes one read may see, and whose they are. No read of memory exists without one."""

    owner: str
    scopes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.owner or not self.scopes or any(not scope for scope in self.scopes):
            raise ValueError("a read set names its owner and at least one scope")
