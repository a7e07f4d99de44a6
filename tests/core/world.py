"""A small world for tests of the core: a real store, a clock to turn, a scripted backend."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from isola_core.attribution.lexicon import Lexicon
from isola_core.attribution.router import Router
from isola_core.attribution.rules import is_low_signal
from isola_core.errors import HarnessError
from isola_core.memory.gates import Reading
from isola_core.memory.recall import recall
from isola_core.memory.scopes import project_read_set
from isola_core.model import DecisionView, MemoryView, Target
from isola_core.ports import (
    FailureKind,
    JudgeModel,
    Outgoing,
    ProcessIdentity,
    Receipt,
    ReceiptState,
    Rewound,
    SessionRef,
    SessionState,
    SessionStatus,
    TurnRef,
    TurnResult,
    next_generation,
)
from isola_core.projects import NewProject, Projects
from isola_core.service.delegated import Accepted, DelegatedService, Incoming
from isola_core.service.dispatcher import Dispatcher
from isola_core.service.recovery import Recovery
from isola_core.service.settings import Core, Settings, Vault, ensure_owner
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction

START = 1_800_000_000_000


class ManualClock:
    """Stands still until a test turns it."""

    def __init__(self, now: int = START) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class CountingIds:
    """Ids in order: `d-000000000001`, ...; `salt` tells two processes apart."""

    def __init__(self, salt: int = 0) -> None:
        self._next = salt

    def new(self, prefix: str) -> str:
        self._next += 1
        return f"{prefix}-{self._next:012d}"


@dataclass
class KnownProcesses:
    """Processes whose life a test decides."""

    pid: int = 1
    dead: set[int] = field(default_factory=set)
    machine: str = "machine-1"

    def me(self) -> ProcessIdentity:
        return ProcessIdentity(self.machine, "boot-1", self.pid, START)

    def alive(self, process: ProcessIdentity) -> bool | None:
        if process.machine != self.machine:
            return None
        return process.pid not in self.dead


class ScriptedHarness:
    """A backend whose record is a file: what it received outlives any of our processes.

    Each line is `{"session", "generation", "delivery", "text", "memories", "briefing"}`.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        self.fail: str | None = None
        self.written_when_failing = True
        self.gate: asyncio.Event | None = None
        self.started = asyncio.Event()
        self.interrupted: list[str] = []
        self.rewinds_fail = 0
        self.receipt_known = True
        self.proves_receipt = True
        self._stop: asyncio.Event = asyncio.Event()

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        return SessionStatus(session, SessionState.IDLE)

    def records(self) -> list[dict[str, object]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def texts(self, project: str, generation: int | None = None) -> list[str]:
        """What the sessions of a project hold, rewound turns left out."""
        return [
            str(each["text"])
            for each in self.records()
            if each["session"] == f"proj:{project}"
            and (generation is None or each["generation"] == generation)
        ]

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        if self.fail is not None and not self.written_when_failing:
            return TurnResult(False, error=self.fail, failure=FailureKind.ERROR, written=False)
        record = {
            "session": session.key,
            "generation": session.generation,
            "delivery": message.delivery,
            "text": message.text,
            "memories": list(message.context.memories),
            "briefing": message.context.briefing,
        }
        with self.log.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.started.set()
        if self.gate is not None:
            self._stop.clear()
            opened = asyncio.create_task(self.gate.wait())
            stopped = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait({opened, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                opened.cancel()
                stopped.cancel()
            if self._stop.is_set():
                return TurnResult(False, error="stopped", failure=FailureKind.CANCELLED)
        if self.fail is not None:
            return TurnResult(False, error=self.fail, failure=FailureKind.ERROR)
        return TurnResult(
            True,
            f"re: {message.text}",
            turn_id=f"turn-{message.delivery}",
            received=self.proves_receipt,
        )

    async def interrupt(self, session: SessionRef) -> None:
        self.interrupted.append(session.key)
        self._stop.set()

    async def confirm(self, session: SessionRef, message: Outgoing) -> Receipt:
        if not self.receipt_known:
            return Receipt(ReceiptState.UNKNOWN)
        mine = [each for each in self.records() if each["delivery"] == message.delivery]
        if not mine:
            return Receipt(ReceiptState.ABSENT)
        turn = f"turn-{message.delivery}"
        return Receipt(ReceiptState.ANSWERED, f"re: {message.text}", turn, "in the record")

    async def rewind(self, session: SessionRef, turn: TurnRef) -> Rewound:
        if self.rewinds_fail:
            self.rewinds_fail -= 1
            raise HarnessError("the record is locked")
        kept = [each for each in self.records() if each["delivery"] != turn.delivery]
        temporary = self.log.with_suffix(".new")
        temporary.write_text("".join(json.dumps(each) + "\n" for each in kept))
        temporary.rename(self.log)
        return Rewound(session, replaced=False)

    async def reset_session(self, session: SessionRef) -> SessionRef:
        return next_generation(session)

    async def close(self) -> None:
        return None


@dataclass
class World:
    """One process of a person with projects `billing`, `search` and `infra`."""

    store: SqliteStore
    core: Core
    projects: Projects
    service: DelegatedService
    dispatcher: Dispatcher
    recovery: Recovery
    clock: ManualClock
    processes: KnownProcesses
    harness: ScriptedHarness

    async def say(self, text: str, conversation: str = "c1", **more: object) -> DecisionView:
        """Accept one message that goes to one project or onto one card."""
        accepted = await self.accept(text, conversation, **more)
        (decision,) = accepted.decisions
        return decision

    async def accept(self, text: str, conversation: str = "c1", **more: object) -> Accepted:
        return await self.service.accept(Incoming(conversation, text, **more))  # type: ignore[arg-type]

    async def deliver(self) -> None:
        await self.dispatcher.settle()

    async def pass_window(self) -> None:
        self.clock.advance(301)
        await self.recovery.tick()

    async def remembered(self, project: str, query: str) -> list[MemoryView]:
        found = await self.projects.find(project, retired=True)
        read_set = project_read_set(self.core.owner.id, self.core.owner.label, found)
        return await self.store.read(lambda tx: recall(tx, read_set, query, 50))

    async def now(self, decision: DecisionView | str) -> DecisionView:
        return await self.service.decision(decision if isinstance(decision, str) else decision.id)

    async def rows(self, sql: str, *parameters: object) -> list[dict[str, object]]:
        def work(tx: Transaction) -> list[dict[str, object]]:
            return [{key: row[key] for key in row.keys()} for row in tx.all(sql, *parameters)]  # noqa: SIM118

        return await self.store.read(work)


@asynccontextmanager
async def open_world(
    folder: Path,
    *,
    pid: int = 1,
    judge: JudgeModel | None = None,
    settings: Settings | None = None,
    clock: ManualClock | None = None,
    harness: ScriptedHarness | None = None,
    processes: KnownProcesses | None = None,
    vault: Vault | None = None,
) -> AsyncIterator[World]:
    """Open (or reopen, as another process) the world in `folder`."""
    clock = clock or ManualClock()
    processes = processes or KnownProcesses(pid)
    ids = CountingIds(pid * 1_000_000)
    harness = harness or ScriptedHarness(folder / "backend.jsonl")
    store = await SqliteStore.open(folder / "data" / "isola.db", clock)
    try:
        owner = await ensure_owner(store, ids, processes.machine, "test")
        core = Core(
            store,
            owner,
            processes.machine,
            settings or Settings(),
            ids,
            vault or Vault(),
            lambda project: project.harness or "scripted",
        )
        projects = Projects(store, owner.id, owner.label)
        await projects.sync(
            NewProject(name.capitalize(), description, id=name)
            for name, description in (
                ("billing", "invoices, refunds, the payment provider"),
                ("search", "the index, ranking and queries"),
                ("infra", "machines, deploys, monitoring"),
            )
        )
        lexicon = Lexicon.load()
        dispatcher = Dispatcher(core, lambda _: harness, processes)
        try:
            yield World(
                store=store,
                core=core,
                projects=projects,
                service=DelegatedService(core, Router(judge)),
                dispatcher=dispatcher,
                recovery=Recovery(
                    core, Reading(lambda text: is_low_signal(text, lexicon), lexicon.memory_kind)
                ),
                clock=clock,
                processes=processes,
                harness=harness,
            )
        finally:
            await dispatcher.close()
    finally:
        await store.close()


async def until(condition: Callable[[], object], limit_s: float = 5.0) -> None:
    """Wait for a condition; it is an error if it does not come true in time."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - any condition, not one of ours
            await asyncio.sleep(0.005)


BILLING = Target("billing")
SEARCH = Target("search")
INFRA = Target("infra")
