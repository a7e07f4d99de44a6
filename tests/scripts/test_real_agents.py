"""The plain test run drives the real agents too, where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SURROUNDINGS = dict(os.environ)
"""As it was before the tests got a home of their own: the agents are found by it."""


def test_the_real_agents_pass_their_tests(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--real-cli"):
        pytest.skip("--real-cli runs them in this process")
    installed = subprocess.run(
        [ROOT / "scripts" / "install-agents", "--where"],
        env=SURROUNDINGS,
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip("the pinned agents are not installed: run scripts/install-agents")
    if not any(_works("unshare", option, "true") for option in ("-n", "-rn")):
        pytest.skip("no network namespace can be made: root or user namespaces are needed")
    if not _works("ip", "-V"):
        pytest.skip("ip is not found: install iproute2")
    run = subprocess.run(
        [ROOT / "scripts" / "real-cli-tests", "tests/real_cli", "-q", "-p", "no:cacheprovider"],
        env=SURROUNDINGS | {"ISOLA_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout[-8000:]
    assert " passed" in run.stdout
    assert " skipped" not in run.stdout


def _works(*command: str) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except OSError:
        return False
