"""The program under test, from outside: an installed `isola` and nothing of this process's Python.

`--isola PROGRAM` names it; without, it is the one beside this interpreter (the checkout's,
installed editable). CI names one in an environment that holds the built wheel and its dependencies
alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is end to end."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def isola_program(request: pytest.FixtureRequest) -> Path:
    """The installed command, to be started with any arguments."""
    named: Path | None = request.config.getoption("--isola")
    program = named or Path(sys.executable).with_name("isola")
    if not program.exists():
        pytest.fail(f"there is no program {program}; install the project or name one with --isola")
    return program.absolute()


@pytest.fixture(scope="session")
def isola_python(isola_program: Path) -> Path:
    """The interpreter of the environment that the program is installed in."""
    return isola_program.with_name("python")


@pytest.fixture
def outside_environment() -> dict[str, str]:
    """The environment for a child that must find the installed packages by itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@pytest.fixture
def isola(isola_program: Path, outside_environment: dict[str, str], tmp_path: Path) -> Run:
    """Run the program to its end in an empty folder: `isola("--version", input="")`."""

    def run(
        *arguments: str, input: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(isola_program), *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env=outside_environment,
        )

    return run
