"""A claude harness with the scripted program behind it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from isola_core.clock import SystemClock
from isola_core.ports import Clock, Outgoing, Question, SessionRef, TurnEvent, TurnResult
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from isola_harnesses.claude.session import Limits
from isola_harnesses.claude.transcript import transcript_path

FAKE = Path(__file__).with_name("fake_claude.py")
QUICK = Limits(end=0.3, interrupt=0.5, receipt=0.3, silence=0.4, family=0.2, holder=0.5)


class HeldClock(SystemClock):
    """A clock whose sleeps end when the test says so."""

    def __init__(self) -> None:
        self.asleep = 0
        self._passed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep += 1
        await self._passed.wait()
        self._passed.clear()

    def pass_time(self) -> None:
        self._passed.set()


@dataclass
class Desk:
    """A harness and one session in front of the scripted program."""

    home: Path
    cwd: Path
    env: dict[str, str]
    harness: ClaudeHarness
    session: SessionRef
    events: list[TurnEvent] = field(default_factory=list)
    asked: list[tuple[Question, ...]] = field(default_factory=list)
    sent: int = 0

    def message(self, text: str, *, raw: bool = False) -> Outgoing:
        self.sent += 1
        return Outgoing(f"d-{self.sent}", f"m-{self.sent}", text, raw=raw)

    async def send(self, message: Outgoing | str) -> TurnResult:
        if isinstance(message, str):
            message = self.message(message)
        self.events.clear()
        result = await asyncio.wait_for(
            self.harness.dispatch_streaming(self.session, message, self.events.append), 30
        )
        self.session = replace(self.session, backend_id=result.backend_id)
        return result

    def sending(self, text: str) -> asyncio.Task[TurnResult]:
        return asyncio.create_task(self.send(text))

    @property
    def starts(self) -> list[dict[str, Any]]:
        path = self.home / "starts.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def transcript(self) -> Path:
        assert self.session.backend_id is not None
        return transcript_path(self.home / ".claude", self.cwd, self.session.backend_id)

    def is_asked(self, question: str) -> bool:
        return [each.id for each in self.questions] == [question]

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.asked[-1] if self.asked else ()


MakeDesk = Callable[..., Desk]


@pytest.fixture
async def make_desk(tmp_path: Path) -> AsyncIterator[MakeDesk]:
    made: list[Desk] = []
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    cwd.mkdir()
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
    program.chmod(0o755)

    def make(
        settings: ClaudeSettings | None = None,
        clock: Clock | None = None,
        limits: Limits = QUICK,
        **more: str,
    ) -> Desk:
        env = {"HOME": str(home), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
        env |= more
        harness = ClaudeHarness(settings or ClaudeSettings(), env, clock or SystemClock(), limits)
        session = SessionRef("s-1", "billing", "proj:billing", 0, cwd=cwd)
        desk = Desk(home, cwd, env, harness, session)
        harness.set_listener(lambda session, questions: desk.asked.append(questions))
        made.append(desk)
        return desk

    yield make
    for desk in made:
        await desk.harness.close()


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    return make_desk()


async def until(condition: Callable[[], object], limit: float = 10.0) -> None:
    """Wait for a condition; fails after `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        await asyncio.sleep(0.01)
