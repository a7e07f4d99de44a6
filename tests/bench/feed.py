"""How soon the feed can be used over a store with 100,000 messages, and what it holds in memory.

A fresh interpreter opens the program on the filled store: seconds from the start of the screen to
the first frame that shows the newest message, and the process's memory beside a store with one
message. Then it scrolls up through twenty pages: what is held stays bounded.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from isola_core.projects import NewProject
from isola_core.service.delegated import Incoming
from isola_core.store.transaction import Transaction
from isola_tui.runtime import Runtime, open_runtime
from tests.bench.figures import Figures, Target

PROJECTS: Final = 50
STORED: Final = 100_000
MOST_SECONDS: Final = 1.0
MOST_MORE_MB: Final = 60.0
PAGES: Final = 20
STEP_S: Final = 0.005
PATIENCE: Final = 12_000
LINES: Final = 6
REPLY: Final = "\n".join(f"- line {n} of an old reply about things" for n in range(LINES))


def run(data: Path | None) -> Figures:
    """Measure in a temporary folder. Needs no data."""
    folder = Path(tempfile.mkdtemp(prefix="isola-bench-"))
    try:
        asyncio.run(_fill(folder / "full", STORED))
        asyncio.run(_fill(folder / "empty", 0))
        full, empty = _measured(folder / "full"), _measured(folder / "empty")
    finally:
        shutil.rmtree(folder)
    seconds, more = float(full["seconds"]), full["rss_mb"] - empty["rss_mb"]
    return Figures(
        figures={
            "messages_stored": STORED,
            "projects": PROJECTS,
            "seconds": seconds,
            "seconds_with_one_message": float(empty["seconds"]),
            "pane_seconds": float(full["pane_seconds"]),
            "search_seconds": float(full["search_seconds"]),
            "rss_mb": full["rss_mb"],
            "rss_mb_with_one_message": empty["rss_mb"],
            "rss_mb_after_scrolling": full["scrolled_rss_mb"],
            "widgets_held_at_most": int(full["held"]),
            "pages_scrolled": PAGES,
        },
        targets={
            "seconds": Target(seconds, MOST_SECONDS),
            "more_rss_mb": Target(more, MOST_MORE_MB),
            "more_rss_mb_after_scrolling": Target(
                full["scrolled_rss_mb"] - empty["rss_mb"], MOST_MORE_MB
            ),
        },
    )


def _measured(home: Path) -> dict[str, Any]:
    root = str(Path(__file__).resolve().parents[2])
    command = (sys.executable, "-m", "tests.bench.feed", str(home))
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


async def _fill(home: Path, count: int) -> None:
    async with open_runtime(environ={"ISOLA_HOME": str(home)}) as runtime:
        for number in range(PROJECTS):
            name = f"project{number:02d}"
            await runtime.projects.add(NewProject(name, f"topic {number}", id=name))
        for number in range(PROJECTS):
            text = f"@project{number:02d} the first message"
            await runtime.service.accept(Incoming("bench", text))
        owner = runtime.core.owner.id
        await runtime.store.write(lambda tx: _multiply(tx, owner, count))
        await runtime.service.accept(Incoming("bench", "@project00 the newest message of all"))
        await runtime.store.write(_answer_all)


def _answer_all(tx: Transaction) -> None:
    tx.run("UPDATE deliveries SET state = 'ANSWERED'")
    tx.run("UPDATE decisions SET state = 'COMMITTED', deadline = NULL")


def _multiply(tx: Transaction, owner: str, count: int) -> None:
    """Stored, decided, answered messages, a reply of several lines each."""
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    if not count:
        return
    tx.run(
        f"INSERT INTO messages (id, owner, conversation, text, created) {numbers} "
        "SELECT 'm-old' || i, ?, 'conversation-' || (i % 200), "
        "'an old message about topic ' || (i % 97), 1000 + i FROM n",
        owner,
    )
    tx.run(
        f"INSERT INTO decisions (id, owner, message, mode, state, project, explanation, weak_label, "
        f"created, updated) {numbers} SELECT 'd-old' || i, ?, 'm-old' || i, 'delegated', "
        '\'COMMITTED\', printf(\'project%02d\', i % 50), \'{"stage":"explicit","confidence":1.0,'
        '"reason":""}\', 1, 1000 + i, 1000 + i FROM n',
        owner,
    )
    tx.run(
        "INSERT INTO deliveries (id, decision, session, attempt, state, created, updated) "
        "SELECT 'l' || d.id, d.id, s.id, 1, 'ANSWERED', d.created, d.created "
        "FROM decisions AS d JOIN sessions AS s ON s.project = d.project WHERE d.id LIKE 'd-old%'"
    )
    tx.run(
        "INSERT INTO turns (delivery, session, generation, reply, started, ended) "
        "SELECT l.id, l.session, 0, ?, l.created, l.created FROM deliveries AS l "
        "WHERE l.id LIKE 'ld-old%'",
        REPLY,
    )


# -- in the measured process


async def _look(home: Path) -> dict[str, float | int]:
    from isola_tui.app import IsolaApp

    began = time.perf_counter()
    async with open_runtime(environ={"ISOLA_HOME": str(home)}) as runtime:
        app = IsolaApp(runtime, conversation="bench")
        async with app.run_test(size=(120, 40)) as pilot:
            await _until(lambda: "the newest message of all" in _drawn(app))
            seconds = time.perf_counter() - began
            found: dict[str, float | int] = {"seconds": seconds, "rss_mb": _rss_mb()}
            held = 0
            for _ in range(PAGES):
                await pilot.press(*("pageup",) * 4)
                await pilot.pause(0.02)
                held = max(held, len(app.home.feed._items))
            found |= {"held": held, "scrolled_rss_mb": _rss_mb()}
            await pilot.press("escape")
            await pilot.pause(1)
            began = time.perf_counter()
            app.home.action_pane_of(2)
            newest = "line 5 of an old reply" if held > PROJECTS + 1 else "the first message"
            await _until(lambda: app.home.viewing.target is not None and newest in _drawn(app))
            found["pane_seconds"] = time.perf_counter() - began
            found["search_seconds"] = await _searched(runtime)
            return found


async def _searched(runtime: Runtime) -> float:
    began = time.perf_counter()
    await runtime.service.search("nothing holds these words", 50)
    return time.perf_counter() - began


async def _until(condition: Any) -> None:
    for _ in range(PATIENCE):
        if condition():
            return
        await asyncio.sleep(STEP_S)
    raise TimeoutError("the screen never showed it")


def _drawn(app: Any) -> str:
    lines = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


def _rss_mb() -> float:
    return float(psutil.Process(os.getpid()).memory_info().rss / 1e6)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_look(Path(sys.argv[1])))))
