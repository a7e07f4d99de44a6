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
    path.mkdir(parents=True, exist_ok=True)
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
