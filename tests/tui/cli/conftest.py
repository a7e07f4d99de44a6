"""Runs commands in this process, each with a store of its own under the test's ISOLA_HOME."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isola_tui import cli
from tests.fake_model.server import FakeModel
from tests.harnesses.claude.conftest import FAKE


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object that was printed."""
        (each,) = self.objects
        return each

    @property
    def objects(self) -> list[Any]:
        """Every line as JSON."""
        return [json.loads(each) for each in self.out.splitlines()]


Isola = Callable[..., Ran]


@pytest.fixture
def isola(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Isola:
    """`isola("chat", "--text", "hello", stdin=b"")`: run one command to its end."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        code = cli.run(list(arguments))
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


@pytest.fixture
def home() -> Path:
    """The folder of this test's configuration and store."""
    path = Path(os.environ["ISOLA_HOME"])
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@pytest.fixture
def projects(isola: Isola) -> None:
    """Two projects: billing and search."""
    for name, about in (
        ("billing", "invoices and payments"),
        ("search", "full text index and ranking"),
    ):
        assert isola("projects", "add", name, "--description", about).code == 0


@pytest.fixture
def model(home: Path) -> Iterator[FakeModel]:
    """A fake model on loopback, configured as the default backend."""
    with FakeModel() as fake:
        (home / "config.yaml").write_text(
            f"harness:\n  type: llm\n  base_url: {fake.url}/v1\n  model: fake-model\n"
        )
        yield fake


@pytest.fixture
def agent(home: Path, tmp_path: Path, isola: Isola) -> Path:
    """The scripted Claude Code behind the projects billing and search; its home."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
    program.chmod(0o755)
    (home / "config.yaml").write_text(f"harness:\n  type: claude\n  binary: {program}\n")
    for name in ("billing", "search"):
        folder = tmp_path / name
        folder.mkdir()
        assert isola("projects", "add", name, "--path", str(folder)).code == 0
    return Path(os.environ["HOME"])
