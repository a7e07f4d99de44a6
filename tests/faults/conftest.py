"""Runs the program as a process of its own, so that a hang, a traceback or a crash is seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model.server import FakeModel

_PROGRAM = "import sys; from isola_tui.__main__ import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a process ended; its output as text."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object that was printed."""
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def error(self) -> dict[str, Any]:
        """The refusal that was printed as JSON."""
        assert self.code != 0
        assert "Traceback" not in self.err
        error: dict[str, Any] = self.json["error"]
        return error


@dataclass
class Program:
    """One person's program; `limit_bytes` is the largest file that it may write."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)
    limit_bytes: int | None = None

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a command."""
        script = _PROGRAM
        if self.limit_bytes is not None:
            limit = f"(resource.RLIMIT_FSIZE, ({self.limit_bytes}, {self.limit_bytes}))"
            script = f"import resource; resource.setrlimit{limit}; {script}"
        return subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(sys.path), "ISOLA_HOME": str(self.home)}
            | self.env,
        )

    def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """Run a command to its end."""
        return ended(self.start(*arguments, stdin=subprocess.PIPE), stdin)

    def decisions(self) -> list[dict[str, Any]]:
        """What is stored."""
        ran = self.run("decisions", "--json")
        assert ran.code == 0, ran
        found: list[dict[str, Any]] = ran.json["decisions"]
        return found

    def configure(self, text: str) -> None:
        """Write the configuration."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.yaml").write_text(text)


def ended(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Ran:
    """Wait for a started command."""
    try:
        out, err = process.communicate(stdin, timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"it hangs\n{out!r}\n{err!r}")
    return Ran(process.returncode, out.decode(), err.decode())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program whose store is not there yet."""
    return Program(tmp_path / "isola")


@pytest.fixture(scope="session")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the projects billing and search, made once and copied for each test."""
    home = tmp_path_factory.mktemp("registered") / "isola"
    for name in ("billing", "search"):
        assert Program(home).run("projects", "add", name).code == 0
    return home


@pytest.fixture
def with_projects(program: Program, registered: Path) -> Program:
    """A program with the projects billing and search."""
    shutil.copytree(registered, program.home, dirs_exist_ok=True)
    return program


@pytest.fixture
def model(program: Program) -> Iterator[FakeModel]:
    """A fake model that the program's projects talk to, with little patience."""
    with FakeModel() as fake:
        program.configure(
            f"harness:\n  type: llm\n  base_url: {fake.url}/v1\n  model: fake-model\n"
            "  timeout_s: 2\n  idle_timeout_s: 1\n"
        )
        yield fake
