"""How long `isola --version` takes beside a bare interpreter, and the first usable frame beside a
bare Textual program with the same widgets; how much is imported.

Runs of both alternate, so that a slow moment of the machine meets both; medians are compared.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench._terminal import BARE_COMMAND, watched
from tests.bench.figures import Figures, Target

RUNS = 60
WARM_UP = 3
MOST_TIMES_BARE = 3.0
FRAMES = 9
MOST_TIMES_BARE_FRAME = 1.5

BARE = (sys.executable, "-c", "pass")


def run(data: Path | None, runs: int = RUNS, frames: int = FRAMES) -> Figures:
    """Measure the installed program beside this interpreter. Needs no data."""
    script = Path(sys.executable).with_name("isola")
    program = (
        (sys.executable, str(script)) if script.exists() else (sys.executable, "-m", "isola_tui")
    )
    version = (*program, "--version")
    bare_s: list[float] = []
    version_s: list[float] = []
    for number in range(WARM_UP + runs):
        for command, times in ((BARE, bare_s), (version, version_s)):
            seconds = _seconds(command)
            if number >= WARM_UP:
                times.append(seconds)
    ratio = statistics.median(version_s) / statistics.median(bare_s)
    bare_frame_s, frame_s = _frames(frames)
    frame_ratio = statistics.median(frame_s) / statistics.median(bare_frame_s)
    bare_modules, version_modules = _modules(BARE), _modules(version)
    return Figures(
        figures={
            "runs": runs,
            "bare_ms": statistics.median(bare_s) * 1000,
            "version_ms": statistics.median(version_s) * 1000,
            "ratio": ratio,
            "frames": frames,
            "bare_frame_ms": statistics.median(bare_frame_s) * 1000,
            "frame_ms": statistics.median(frame_s) * 1000,
            "frame_ratio": frame_ratio,
            "modules_bare": len(bare_modules),
            "modules_version": len(version_modules),
            "modules_of_isola": sum(each.startswith("isola") for each in version_modules),
        },
        targets={
            "ratio": Target(ratio, MOST_TIMES_BARE),
            "frame_ratio": Target(frame_ratio, MOST_TIMES_BARE_FRAME),
        },
    )


def _frames(frames: int) -> tuple[list[float], list[float]]:
    """Seconds from the start of the process to a screen that can be typed on: bare, and ours."""
    bare: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        env = {"ISOLA_HOME": f"{home}/home", "LANG": "C.UTF-8"}
        program = (sys.executable, "-m", "isola_tui")
        for number in range(1 + frames):
            for command, marker, times in (
                (BARE_COMMAND, b"ready to type", bare),
                (program, b"One line for all", ours),
            ):
                begun = time.perf_counter()
                with watched(command, env) as screen:
                    screen.until(marker)
                    seconds = time.perf_counter() - begun
                if number:
                    times.append(seconds)
    return bare, ours


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _modules(command: Sequence[str]) -> list[str]:
    """The names of the modules that a Python command imports, in the order of -X importtime."""
    interpreter, *rest = command
    said = subprocess.run(
        [interpreter, "-X", "importtime", *rest],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    lines = [line for line in said.splitlines() if line.startswith("import time:")]
    return [line.rpartition("|")[2].strip() for line in lines[1:]]
