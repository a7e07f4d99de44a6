"""The service against a model: any order of acts, and every text only where it belongs.

Each message carries a mark of its own. Whatever a person does to it, whatever fails or dies on the
way, in the end the mark is in the session and the memory of its last project and nowhere else: not
as a message, not quoted from a memory, not in a briefing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from isola_core.errors import Conflict, NotFound
from isola_core.model import DecisionState, DecisionView, DeliveryState, Target
from isola_core.projects import ProjectChanges
from isola_core.service.session_admin import SessionAdmin
from tests.core.world import (
    KnownProcesses,
    ManualClock,
    ScriptedHarness,
    World,
    open_world,
    until,
)

PROJECTS = ("billing", "search", "infra")
WORDS = "we decided that the quux stays as it is"
"""In every message, so that each one recalls the others of its project."""

FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Every step is a commit, and a disk would take most of the time."""

projects = st.sampled_from(PROJECTS)


class ResettingHarness(ScriptedHarness):
    """A backend that can forget a whole session only."""

    rewind = None  # type: ignore[assignment]


@dataclass
class Entry:
    """What the person knows of one message; `project` None: on a card, or withdrawn."""

    mark: str
    decision: str
    project: str | None
    ended: bool = False
    resent: int = 0


class Service(RuleBasedStateMachine):
    """The person, their machine and its faults."""

    harness_class: type[ScriptedHarness] = ScriptedHarness

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=FAST, ignore_cleanup_errors=True)
        self.path = Path(self.folder.name)
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.harness = self.harness_class(self.path / "backend.jsonl")
        self.dead: set[int] = set()
        self.pid = 0
        self.marks = 0
        self.entries: list[Entry] = []
        self.stack: AsyncExitStack
        self.world: World
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _open(self) -> None:
        self.pid += 1
        self.stack = AsyncExitStack()
        self.world = await self.stack.enter_async_context(
            open_world(
                self.path,
                pid=self.pid,
                clock=self.clock,
                harness=self.harness,
                processes=KnownProcesses(self.pid, dead=self.dead),
            )
        )

    async def _crash(self) -> None:
        """The process stores nothing any more, and another one starts."""

        async def gone(_: object) -> NoReturn:
            raise RuntimeError("killed")

        self.world.store.write = gone  # type: ignore[method-assign,assignment]
        await self.stack.aclose()
        self.dead.add(self.pid)
        self.harness.gate = None
        await self._open()

    # -- what a person does

    @rule(project=projects, by_hand=st.booleans())
    def say(self, project: str, by_hand: bool) -> None:
        mark = self._mark()
        targets = (Target(project),) if by_hand else ()
        text = f"{WORDS} {mark}" if by_hand else f"@{project} {WORDS} {mark}"
        view = self.run(self.world.say(text, targets=targets, event_id=mark))
        self.entries.append(Entry(mark, view.id, project))

    @rule(first=projects, second=projects)
    def say_to_two(self, first: str, second: str) -> None:
        mark = self._mark()
        if first == second:
            return
        accepted = self.run(self.world.accept(f"@{first} @{second} {WORDS} {mark}"))
        for view in accepted.decisions:
            # both hold the same text, so each gets its own mark by its place
            self.entries.append(Entry(f"{mark}:{view.project}", view.id, view.project))

    @rule()
    def say_unclearly(self) -> None:
        mark = self._mark()
        view = self.run(self.world.say(f"{WORDS} {mark}", "c-new"))
        project = view.project if view.state is DecisionState.TENTATIVE else None
        self.entries.append(Entry(mark, view.id, project))

    def _mark(self) -> str:
        self.marks += 1
        return f"MARK{self.marks:03d}X"

    def _pick(self, data: st.DataObject) -> Entry:
        return data.draw(st.sampled_from(self.entries), label="entry")

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), project=projects)
    def confirm(self, data: st.DataObject, project: str) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            view = self.run(self.world.service.confirm(entry.decision, Target(project)))
            entry.project = view.project

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), project=projects)
    def correct(self, data: st.DataObject, project: str) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            done = self.run(self.world.service.correct(entry.decision, Target(project)))
            self._moved(entry, done.new)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            self.run(self.world.service.withdraw(entry.decision))
            entry.project, entry.ended = None, True

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            done = self.run(self.world.service.undo(entry.decision))
            if hasattr(done, "new"):
                self._moved(entry, done.new)
            else:
                entry.project, entry.ended = None, True

    def _moved(self, entry: Entry, new: DecisionView) -> None:
        entry.decision, entry.project, entry.resent = new.id, new.project, 0

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), act=st.sampled_from(["hold", "release", "commit_now", "interrupt"]))
    def touch(self, data: st.DataObject, act: str) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            self.run(getattr(self.world.service, act)(entry.decision))

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        entry = self._pick(data)
        with contextlib.suppress(Conflict):
            self.run(self.world.service.resend(entry.decision))
            entry.resent += 1

    @rule(project=projects)
    def move(self, project: str) -> None:
        self.marks += 1
        folder = self.path / f"moved-{self.marks}"
        folder.mkdir()
        self.run(self.world.projects.edit(project, ProjectChanges(path=str(folder))))

    @rule(project=projects)
    def reset(self, project: str) -> None:
        world = self.world
        admin = SessionAdmin(world.core, lambda _: world.harness, world.processes)
        with contextlib.suppress(Conflict, NotFound):
            self.run(admin.reset(Target(project)))

    # -- what time and machines do

    @rule()
    def deliver(self) -> None:
        self.run(self.world.deliver())

    @rule(seconds=st.sampled_from([1, 301]))
    def tick(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.run(self.world.recovery.tick())

    @rule(fault=st.sampled_from(["none", "fails", "fails unwritten", "unproven", "unknown"]))
    def backend_changes(self, fault: str) -> None:
        self.harness.fail = "overloaded" if fault.startswith("fails") else None
        self.harness.written_when_failing = fault != "fails unwritten"
        self.harness.proves_receipt = fault != "unproven"
        self.harness.receipt_known = fault != "unknown"
        self.harness.rewinds_fail = 5 if fault == "unknown" else 0

    @rule()
    def live(self) -> None:
        """All is well for a while."""
        self.backend_changes("none")
        self.deliver()
        self.tick(301)

    @rule()
    def crash(self) -> None:
        self.run(self._crash())

    @rule()
    def crash_in_a_turn(self) -> None:
        self.run(self._start_a_turn())
        self.run(self._crash())

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), project=projects, act=st.sampled_from(["correct", "withdraw", "hold"]))
    def act_in_a_turn(self, data: st.DataObject, project: str, act: str) -> None:
        self.run(self._start_a_turn())
        match act:
            case "correct":
                entry = self._pick(data)
                with contextlib.suppress(Conflict):
                    done = self.run(self.world.service.correct(entry.decision, Target(project)))
                    self._moved(entry, done.new)
            case "withdraw":
                entry = self._pick(data)
                with contextlib.suppress(Conflict):
                    self.run(self.world.service.withdraw(entry.decision))
                    entry.project, entry.ended = None, True
            case _:
                entry = self._pick(data)
                with contextlib.suppress(Conflict):
                    self.run(self.world.service.hold(entry.decision))
                    self.run(self.world.service.commit_now(entry.decision))
        self.run(self._end_turns())

    async def _start_a_turn(self) -> None:
        self.harness.gate = asyncio.Event()
        self.harness.started.clear()
        dispatcher = self.world.dispatcher
        await dispatcher.pump()
        await until(
            lambda: (
                self.harness.started.is_set()
                or not any(map(dispatcher.driving, list(dispatcher._drivers)))
            )
        )

    async def _end_turns(self) -> None:
        assert self.harness.gate is not None
        self.harness.gate.set()
        self.harness.gate = None
        await self.world.deliver()

    # -- what must hold

    @invariant()
    def the_store_knows_what_the_person_knows(self) -> None:
        for entry in self.entries:
            view = self.run(self.world.now(entry.decision))
            if entry.ended:
                assert view.state is DecisionState.WITHDRAWN
            else:
                assert view.project == entry.project

    def teardown(self) -> None:
        try:
            self.run(self._settle())
            self.run(self._check())
        finally:
            self.run(self.stack.aclose())
            self.runner.close()
            self.folder.cleanup()

    async def _settle(self) -> None:
        """The person looks after everything that needs them."""
        world, service = self.world, self.world.service
        self.harness.fail, self.harness.rewinds_fail = None, 0
        self.harness.receipt_known = self.harness.proves_receipt = True
        await world.deliver()
        for entry in self.entries:
            view = await world.now(entry.decision)
            if view.state is not DecisionState.TENTATIVE:
                continue
            await service.release(entry.decision)
            if view.delivery in (DeliveryState.FAILED, DeliveryState.CANCELLED):
                await service.resend(entry.decision)
                entry.resent += 1
            elif view.delivery is DeliveryState.UNKNOWN:
                await service.settle(entry.decision)
        await world.deliver()
        for _ in range(2):
            await world.pass_window()
            await world.deliver()
        for project in PROJECTS:  # so that what waits to be told is told
            await world.say(WORDS, targets=(Target(project),))
        await world.deliver()

    async def _check(self) -> None:
        generations = {
            str(row["project"]): row["generation"]
            for row in await self.world.rows("SELECT project, generation FROM sessions")
        }
        for entry in self.entries:
            view = await self.world.now(entry.decision)
            assert view.state in (
                DecisionState.COMMITTED,
                DecisionState.WITHDRAWN,
                DecisionState.WAITING_CONFIRMATION,
            ), f"{entry} was left {view.state} {view.delivery} until {view.deadline}"
            mark = entry.mark.partition(":")[0]
            homes = {each.project for each in self.entries if each.mark.startswith(mark)}
            for project in PROJECTS:
                now = [
                    each
                    for each in self.harness.records()
                    if each["session"] == f"proj:{project}"
                    and each["generation"] == generations.get(project)
                ]
                known = await self.world.remembered(project, mark)
                remembered = [each for each in known if mark in each.content]
                if project not in homes:
                    assert not [each for each in now if mark in str(each)], f"{entry}: {project}"
                    assert not remembered, f"{project} remembers {entry}"
                else:
                    same = [e for e in self.entries if e.mark.startswith(mark)]
                    same = [e for e in same if e.project == project]
                    times = sum(mark in str(each["text"]) for each in now)
                    assert times <= sum(1 + e.resent for e in same), f"{entry} came {times} times"
                    assert len(remembered) == 1, f"{project} remembers {entry} not once"


class ResettingService(Service):
    """The same with a backend that forgets whole sessions only."""

    harness_class = ResettingHarness


LIMITS = settings(
    max_examples=100,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("machine", [Service, ResettingService])
def test_every_text_is_only_where_it_belongs(machine: type[Service]) -> None:
    run_state_machine_as_test(machine, settings=LIMITS)
