"""How long `isola --version` takes beside a bare interpreter, and how much it imports.

Runs of both alternate, so that a slow moment of the machine meets both; medians are compared.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import Figures, Target

RUNS = 60
WARM_UP = 3
MOST_TIMES_BARE = 3.0

BARE = (sys.executable, "-c", "pass")


def run(data: Path | None, runs: int = RUNS) -> Figures:
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
    bare_modules, version_modules = _modules(BARE), _modules(version)
    return Figures(
        figures={
            "runs": runs,
            "bare_ms": statistics.median(bare_s) * 1000,
            "version_ms": statistics.median(version_s) * 1000,
            "ratio": ratio,
            "modules_bare": len(bare_modules),
            "modules_version": len(version_modules),
            "modules_of_isola": sum(each.startswith("isola") for each in version_modules),
        },
        targets={"ratio": Target(ratio, MOST_TIMES_BARE)},
    )


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
