"""A stage for the screen's tests: a real runtime in a folder of its own, a clock that stands still.

The notebook harness answers, ids are counted, so that a state looks the same in every run.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from textual.pilot import Pilot

from isola_core.model import Attribution, DecisionView, DeliveryState, Stage, Target
from isola_core.projects import NewProject
from isola_core.service.delegated import Incoming
from isola_tui.app import IsolaApp
from isola_tui.runtime import Runtime, open_runtime
from isola_tui.screens.home import HomeScreen
from isola_tui.themes import theme_of

NOON: Final = 1_790_000_000_000
"""2026-09-21 14:13:20 UTC, a Monday."""

CONVERSATION: Final = "terminal-1"
NO_COLOR: Final = "no-color"
PATIENCE_S: Final = 10.0
SIZE: Final = (120, 40)

PROJECTS: Final = (
    NewProject("billing", "invoices, payments, dunning", ("计费",), id="billing"),
    NewProject("search", "full text index and ranking", (), id="search"),
    NewProject("docs", "the handbook and the website", (), id="docs"),
)


class StandingClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, now: int = NOON) -> None:
        self._now = now
        self._moved = asyncio.Event()

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * 1000)
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        until = self._now + int(seconds * 1000)
        while self._now < until:
            await self._moved.wait()


class CountedIds:
    """Ids that count up, one sequence for each prefix."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        self._counts[prefix] += 1
        return f"{prefix}-{self._counts[prefix]:012}"


@dataclass
class Running:
    """One running screen and what is behind it."""

    runtime: Runtime
    app: IsolaApp
    pilot: Pilot[int]
    clock: StandingClock

    @property
    def home(self) -> HomeScreen:
        return self.app.home

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; fail with what the screen says when it never does."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"never came; notice: {self.home.notice.text!r}"
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def until_async(self, condition: Callable[[], Awaitable[object]]) -> None:
        """`until` for a condition that has to be awaited."""
        deadline = time.monotonic() + PATIENCE_S
        while not await condition():
            assert time.monotonic() < deadline, f"never came; notice: {self.home.notice.text!r}"
            await self.pilot.pause(0.01)

    async def ended(self) -> None:
        """Wait until the program has asked to end."""
        deadline = time.monotonic() + PATIENCE_S
        while self.app.return_code is None or not self.app._exit:
            assert time.monotonic() < deadline, "the program did not end"
            await asyncio.sleep(0.01)

    async def type(self, text: str) -> None:
        """Type a text into whatever has the keyboard."""
        for letter in text:
            await self.pilot.press("space" if letter == " " else letter)

    async def send(self, text: str) -> DecisionView:
        """Put a text into the entry and send it; the newest decision once it is accepted."""
        known = set(self.home.board.decisions)
        self.home.entry.load_message(text)
        await self.pilot.pause()
        await self.pilot.press("enter")
        await self.until(lambda: set(self.home.board.decisions) - known)
        return self.newest

    async def answered(self, decision: str) -> DecisionView:
        """Wait until a decision's turn has ended well."""
        await self.until(lambda: self.view(decision).delivery is DeliveryState.ANSWERED)
        return self.view(decision)

    def view(self, decision: str) -> DecisionView:
        return self.home.board.decisions[decision]

    @property
    def newest(self) -> DecisionView:
        return next(reversed(self.home.board.decisions.values()))

    @property
    def screen_text(self) -> str:
        """Everything that stands on the screen, row by row."""
        lines = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join("".join(segment.text for segment in strip) for strip in lines)

    @property
    def target_title(self) -> str:
        """The line above the text in the entry."""
        title = self.home.entry._border_title
        return title.plain if title else ""


def write_config(home: Path, config: str) -> None:
    """Give the folder a configuration."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text(config, encoding="utf-8")


@asynccontextmanager
async def opened(
    home: Path,
    *,
    projects: Sequence[NewProject] = PROJECTS,
    config: str = "",
    clock: StandingClock | None = None,
) -> AsyncIterator[Runtime]:
    """A runtime over a fresh or existing folder, with these projects registered."""
    if config:
        write_config(home, config)
    environ = {"ISOLA_HOME": str(home)}
    ids = CountedIds()
    async with open_runtime(environ=environ, clock=clock or StandingClock(), ids=ids) as runtime:
        known = {each.id for each in await runtime.projects.all(retired=True)}
        for project in projects:
            if project.id not in known:
                await runtime.projects.add(project)
        yield runtime


@asynccontextmanager
async def on_stage(
    runtime: Runtime, *, size: tuple[int, int] = SIZE, language: str = "en", theme: str = ""
) -> AsyncIterator[Running]:
    """The program over a runtime, without a terminal. A theme's name, or `no-color`."""
    if theme == NO_COLOR:
        os.environ["NO_COLOR"] = "1"
    try:
        app = IsolaApp(runtime, conversation=CONVERSATION, language=language)
    finally:
        os.environ.pop("NO_COLOR", None)
    async with app.run_test(size=size) as pilot:
        if theme and theme != NO_COLOR:
            app.theme = theme_of(theme)
        clock = runtime.clock
        assert isinstance(clock, StandingClock)
        stage = Running(runtime, app, pilot, clock)
        await stage.until(lambda: app.home.is_mounted and app.home.entry.has_focus)
        yield stage


async def picture(stage: Running) -> str:
    """The screen as SVG, once two drawings in a row are the same; ids in it are fixed."""
    before = ""
    while (drawn := stage.app.export_screenshot(title="isola", simplify=True)) != before:
        before = drawn
        await stage.pilot.pause(0.05)
    return re.sub(r"terminal-\d+-", "terminal-", drawn)


def seen(project: str, confidence: float = 0.97, reason: str = "words of its past") -> Attribution:
    """A preview that stood on the screen."""
    return Attribution(
        Stage.JUDGEMENT, confidence, reason, Target(project), automatic=True, judge="local"
    )


async def say(
    runtime: Runtime, text: str, project: str | None = None, *, conversation: str = CONVERSATION
) -> DecisionView:
    """Accept a message without the screen, as another process would."""
    shown = seen(project) if project else None
    accepted = await runtime.service.accept(Incoming(conversation, text, shown=shown))
    return accepted.decisions[0]
