"""Typing while 12 sessions stream 200 lines a second each: from the key to the text on the screen,
beside a bare Textual program with the same widgets and the same streams, and what a preview takes.

Keys are posted as events: a pilot's key press waits for idle and measures that instead.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static, TextArea

from isola_core.model import DecisionView, DeliveryState
from isola_core.ports import TurnEvent, TurnEventKind
from isola_core.projects import NewProject
from tests.bench.figures import Figures, Target
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.states import end_delivery, stop_dispatching

SESSIONS = 12
PROJECTS = 50
LINES_PER_S = 200
TICK_S = 0.02
KEYS = 240
REST_S = 0.03
"""Between two keys: a fast typist needs 80 ms."""

MOST_TIMES_BARE = 2.0
MOST_PREVIEW_MS = 30.0
TEXT = "roll back the invoice migration of project 7 and keep the audit rows "


def run(data: Path | None, keys: int = KEYS) -> Figures:
    """Measure both in one process, one after the other, twice in turn. Needs no data."""
    ours, bare, previews = asyncio.run(_measure(keys))
    ratio = _p95(ours) / _p95(bare)
    return Figures(
        figures={
            "keys": len(ours),
            "sessions": SESSIONS,
            "lines_per_s": SESSIONS * LINES_PER_S,
            "projects": PROJECTS,
            "bare_p50_ms": statistics.median(bare),
            "bare_p95_ms": _p95(bare),
            "key_p50_ms": statistics.median(ours),
            "key_p95_ms": _p95(ours),
            "ratio_p95": ratio,
            "preview_p50_ms": statistics.median(previews),
            "preview_p95_ms": _p95(previews),
        },
        targets={
            "ratio_p95": Target(ratio, MOST_TIMES_BARE),
            "preview_p95_ms": Target(_p95(previews), MOST_PREVIEW_MS),
        },
    )


def _p95(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.95))]


async def _measure(keys: int) -> tuple[list[float], list[float], list[float]]:
    ours: list[float] = []
    bare: list[float] = []
    previews: list[float] = []
    for _ in range(2):
        bare += await _bare(keys // 2)
        found, looked = await _isola(keys // 2)
        ours += found
        previews += looked
    return ours, bare, previews


async def _type(app: App[Any], area: TextArea, keys: int) -> list[float]:
    """Milliseconds from posting a key to the frame that shows its letter."""
    times = []
    for number in range(keys):
        letter = TEXT[number % len(TEXT)]
        drawn = asyncio.Event()
        before = len(area.text)
        begun = time.perf_counter()
        app.post_message(events.Key("space" if letter == " " else letter, letter))
        while len(area.text) == before:  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0)
        area.call_after_refresh(drawn.set)
        await drawn.wait()
        times.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(REST_S)
    return times


@asynccontextmanager
async def _streaming(say_line: Callable[[int, str], None]) -> Any:
    """Lines for every session, at the rate, however busy the loop is."""

    async def stream() -> None:
        begun, said = time.perf_counter(), 0
        while True:
            due = int((time.perf_counter() - begun) * LINES_PER_S)
            for number in range(said, due):
                for session in range(SESSIONS):
                    say_line(session, f"line {number} of what session {session} has to say\n")
            said = due
            await asyncio.sleep(TICK_S)

    task = asyncio.create_task(stream())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _isola(keys: int) -> tuple[list[float], list[float]]:
    projects = [
        NewProject(f"project {n}", f"part {n} of the shop", id=f"p{n}") for n in range(PROJECTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with (
            opened(Path(folder) / "home", projects=projects) as runtime,
            on_stage(runtime) as stage,
        ):
            views = await _running(stage)
            live = runtime.dispatcher.live

            def say_line(session: int, line: str) -> None:
                live.hear(views[session].id, TurnEvent(TurnEventKind.TEXT, line))

            async with _streaming(say_line):
                times = await _type(stage.app, stage.home.entry, keys)
            return times, _previews(stage)


async def _running(stage: Running) -> list[DecisionView]:
    """Every session works on a message."""
    stop_dispatching(stage)
    views = [await say(stage.runtime, f"task {n}", f"p{n}") for n in range(SESSIONS)]
    await stage.until(lambda: all(each.id in stage.home.board.decisions for each in views))
    for each in views:
        await end_delivery(stage, each, DeliveryState.RUNNING, "")
        await end_delivery(stage, each, DeliveryState.WRITTEN, "")
    return views


def _previews(stage: Running) -> list[float]:
    """Milliseconds of attribution for every beginning of the text."""
    times = []
    for end in range(1, len(TEXT)):
        begun = time.perf_counter()
        stage.runtime.service.preview(TEXT[:end], stage.app.conversation)
        times.append((time.perf_counter() - begun) * 1000)
    return times


class _Bare(App[None]):
    """The home screen's widgets with nothing behind them; streams are drawn every 80 ms."""

    CSS = """
    #left, #right { width: 30; } #panes { height: 1fr; }
    #feed Static { height: 8; } #entry { height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[list[str]] = [[] for _ in range(SESSIONS)]

    def compose(self) -> ComposeResult:
        with Horizontal(id="panes"):
            yield Static("\n".join(f"project {n}" for n in range(PROJECTS)), id="left")
            with VerticalScroll(id="feed"):
                for session in range(SESSIONS):
                    yield Static(f"task {session}", markup=False)
            yield Static("\n".join(f"task {n}" for n in range(SESSIONS)), id="right")
        yield Static("notice")
        yield TextArea(id="entry", compact=True)
        yield Static("keys")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()
        self.set_interval(0.08, self.draw_lines)

    def draw_lines(self) -> None:
        for lines, static in zip(self.lines, self.query("#feed Static"), strict=True):
            assert isinstance(static, Static)
            static.update("\n".join(lines[-7:]))


async def _bare(keys: int) -> list[float]:
    app = _Bare()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()

        def say_line(session: int, line: str) -> None:
            app.lines[session].append(line.rstrip("\n"))

        async with _streaming(say_line):
            return await _type(app, app.query_one(TextArea), keys)
