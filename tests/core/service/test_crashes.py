"""SIGKILL at every step of accept, deliver, correct, rewind, commit, write; others finish it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_a_process_killed_at_any_step_leaves_nothing_that_cannot_be_finished(
    tmp_path: Path, part: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.core.service.crash", str(tmp_path), str(part), str(PARTS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={"PYTHONPATH": "core:harnesses:.", "PATH": "", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["steps"] > 100, "the scenario does what it says"
    assert result["killed"] == result["tried"] > 10
    assert result["failures"] == {}
