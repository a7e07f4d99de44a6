"""What the open screen costs while nobody types: CPU over 20 s with 20 windows counting down."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import psutil

from isola_core.model import DeliveryState
from isola_core.projects import NewProject
from isola_core.service.delegated import Incoming
from isola_tui.runtime import open_runtime
from tests.bench._terminal import watched
from tests.bench.figures import Figures, Target
from tests.tui.stage import seen

WINDOWS = 20
SECONDS = 20.0
MOST_PERCENT = 2.0


def run(data: Path | None, seconds: float = SECONDS) -> Figures:
    """Open the real program in a terminal over a store with live windows. Needs no data."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text("isolation_s: 86400\n", encoding="utf-8")
        asyncio.run(_fill(home))
        command = (sys.executable, "-m", "isola_tui")
        with watched(command, {"ISOLA_HOME": str(home), "LANG": "C.UTF-8"}) as program:
            program.until(b"message 19")
            program.rest(3.0)
            process = psutil.Process(program.pid)
            before, begun, written = process.cpu_times(), time.monotonic(), len(program.written)
            program.rest(seconds)
            after, took = process.cpu_times(), time.monotonic() - begun
            written = len(program.written) - written
    used = after.user + after.system - before.user - before.system
    percent = used / took * 100
    return Figures(
        figures={
            "windows": WINDOWS,
            "seconds": took,
            "cpu_s": used,
            "percent_of_a_core": percent,
            "bytes_written_per_s": written / took,
        },
        targets={"percent_of_a_core": Target(percent, MOST_PERCENT)},
    )


async def _fill(home: Path) -> None:
    async with open_runtime(environ={"ISOLA_HOME": str(home)}) as runtime:
        await runtime.projects.add(NewProject("billing", id="billing"))
        for number in range(WINDOWS):
            text = f"message {number}"
            await runtime.service.accept(Incoming("terminal-1", text, shown=seen("billing")))
        work = asyncio.create_task(runtime.dispatcher.run())
        try:
            async with asyncio.timeout(60):
                while any(  # noqa: ASYNC110 - what is waited for tells nobody
                    each.delivery is not DeliveryState.ANSWERED
                    for each in await runtime.service.latest(WINDOWS)
                ):
                    await asyncio.sleep(0.05)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
