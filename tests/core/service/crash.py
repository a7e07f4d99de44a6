"""Kill a process at every step of its work, then let a new one finish it.

Run as a program: `python -m tests.core.service.crash FOLDER PART PARTS`. A step is one SQL
statement (killed just before it) or one commit (killed just after it), so that every gap is
tried. Each step gets a process of its own, forked before any thread exists, that ends by SIGKILL;
another one, with the same store and the same backend, does what a person and a restart would do and
checks that everything is where it belongs. Prints one JSON object: steps tried, and what failed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isola_core.attribution.words import WordCounts
from isola_core.model import DecisionState, DecisionView, DeliveryState, Target
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction
from tests.core.world import (
    BILLING,
    INFRA,
    SEARCH,
    START,
    KnownProcesses,
    ManualClock,
    ScriptedHarness,
    World,
    open_world,
)

MESSAGES = {
    "e1": ("@billing we decided that ALPHAMARK stays", INFRA),
    "e2": ("@billing we decided that BETAMARK goes", SEARCH),
    "e3": ("the unclear GAMMAMARK thing, make it faster", SEARCH),
}
MARKS = {"e1": "ALPHAMARK", "e2": "BETAMARK", "e3": "GAMMAMARK"}


async def scenario(folder: Path) -> None:
    """Everything that happens to messages, from typing to memory and back."""
    async with open_world(folder, pid=1) as world:
        first = await world.say(MESSAGES["e1"][0], event_id="e1")
        await world.deliver()
        second = await world.say(MESSAGES["e2"][0], event_id="e2")
        await world.deliver()
        await world.service.correct(second.id, SEARCH)
        await world.deliver()
        card = await world.say(MESSAGES["e3"][0], event_id="e3")
        await world.service.confirm(card.id, SEARCH)
        await world.deliver()
        await world.pass_window()
        await world.service.correct(first.id, INFRA)
        await world.deliver()
        await world.pass_window()


async def finish(folder: Path) -> list[str]:
    """What the next process and the person do; returns what is wrong afterwards."""
    async with open_world(
        folder,
        pid=2,
        clock=ManualClock(START + 10_000_000),
        processes=KnownProcesses(2, dead={1}),
        harness=ScriptedHarness(folder / "backend.jsonl"),
    ) as world:
        await world.recovery.tick()
        await world.deliver()
        for event, (text, target) in MESSAGES.items():
            await _bring_home(world, event, text, target)
        await world.deliver()
        await world.pass_window()
        await world.deliver()
        return await _wrong(world)


async def _bring_home(world: World, event: str, text: str, target: Target) -> None:
    accepted = await world.accept(text, event_id=event)
    active = [each for each in accepted.decisions if _active(each)]
    if not active:
        world.clock.advance(91)
        await world.recovery.tick()
        accepted = await world.accept(text, event_id=event)
        active = [each for each in accepted.decisions if _active(each)]
    (view,) = active
    if view.state is DecisionState.WAITING_CONFIRMATION:
        await world.service.confirm(view.id, target)
    elif view.project != target.project:
        await world.service.correct(view.id, target)
    elif view.delivery is DeliveryState.FAILED:
        await world.service.resend(view.id)


def _active(view: DecisionView) -> bool:
    return view.state not in (DecisionState.CORRECTED, DecisionState.WITHDRAWN)


async def _wrong(world: World) -> list[str]:
    wrong: list[str] = []
    rows = await world.rows("SELECT project, generation FROM sessions")
    generations: dict[object, Any] = {row["project"]: row["generation"] for row in rows}
    for event, (_, home) in MESSAGES.items():
        mark = MARKS[event]
        for project in (BILLING, SEARCH, INFRA):
            expected = int(project == home)
            texts = world.harness.texts(project.project, generations.get(project.project))
            held = sum(mark in text for text in texts)
            if held != expected:
                wrong.append(f"{project.project} holds {mark} {held} times")
            known = await world.remembered(project.project, mark)
            remembered = sum(mark in memory.content for memory in known)
            if remembered != expected:
                wrong.append(f"{project.project} remembers {mark} {remembered} times")
    checks = {
        "open deliveries": "SELECT * FROM deliveries WHERE state NOT IN "
        "('ANSWERED', 'FAILED', 'CANCELLED')",
        "open rewinds": "SELECT * FROM rewinds WHERE state = 'PENDING'",
        "open writes": "SELECT * FROM write_tasks WHERE state IN ('PENDING', 'RUNNING')",
        "messages not committed": "SELECT m.id FROM messages AS m WHERE NOT EXISTS "
        "(SELECT 1 FROM decisions AS d WHERE d.message = m.id AND d.state = 'COMMITTED')",
        "broken references": "PRAGMA foreign_key_check",
    }
    for check, sql in checks.items():
        wrong += [f"{check}: {row}" for row in await world.rows(sql)]
    counted = {
        str(row["project"]): WordCounts.unpack(row["blob"])  # type: ignore[arg-type]
        for row in await world.rows("SELECT project, blob FROM judge_state")
    }
    learned = await world.rows(
        "SELECT d.project, m.text FROM decisions AS d JOIN messages AS m ON m.id = d.message "
        "WHERE d.learned = 1 AND d.state = 'COMMITTED'"
    )
    for name, counts in counted.items():
        rebuilt = WordCounts()
        rebuilt.add_all(str(row["text"]) for row in learned if row["project"] == name)
        if rebuilt != counts:
            wrong.append(f"the counts of {name} differ from a rebuild: {counts} {rebuilt}")
    return wrong


def _step_hook(at: Callable[[], None]) -> None:
    """Call `at` before every statement and after every commit."""
    for name in ("all", "one", "run"):
        original = getattr(Transaction, name)

        def step(self: Transaction, *args: Any, original: Any = original) -> Any:
            at()
            return original(self, *args)

        setattr(Transaction, name, step)
    write: Any = SqliteStore._write

    def committed(self: SqliteStore, *args: Any) -> Any:
        result = write(self, *args)
        at()
        return result

    SqliteStore._write = committed  # type: ignore[assignment,method-assign]


def _forked(work: Callable[[], object]) -> tuple[int, str]:
    """Run `work` in a process of its own: (signal that ended it, its result as JSON)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            result: object = work()
        except BaseException:
            result = [traceback.format_exc()]
        os.write(writing, json.dumps(result).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        output = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), output


def _counted(folder: Path) -> int:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    _step_hook(count)
    asyncio.run(scenario(folder))
    return steps


def _killed(folder: Path, at: int) -> None:
    steps = 0

    def die() -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGKILL)

    _step_hook(die)
    asyncio.run(scenario(folder))


def main(folder: Path, part: int, parts: int) -> dict[str, object]:
    """Try every `parts`-th step, beginning with `part`."""
    (folder / "whole").mkdir(parents=True)
    _, counted = _forked(lambda: _counted(folder / "whole"))
    steps = json.loads(counted)
    failures: dict[int, list[str]] = {}
    tried = killed = 0
    for at in range(1 + part, steps + 1, parts):
        place = folder / str(at)
        place.mkdir()
        ended, _ = _forked(lambda at=at, place=place: _killed(place, at))  # type: ignore[misc]
        killed += ended == signal.SIGKILL
        _, result = _forked(lambda place=place: asyncio.run(finish(place)))  # type: ignore[misc]
        if wrong := json.loads(result or '["the finishing process died"]'):
            failures[at] = wrong
        tried += 1
    return {"steps": steps, "tried": tried, "killed": killed, "failures": failures}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
