"""One person's installation for the tests of the whole path: three projects on a fake model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.terminal import Terminal
from tests.fake_model.script import Request
from tests.fake_model.server import FakeModel

PROJECTS = (
    ("billing", "invoices, payments and dunning", ("计费",)),
    ("search", "full text index and ranking", ("搜索",)),
    ("docs", "the handbook and the website", ("文档",)),
)


@dataclass(frozen=True, slots=True)
class Installation:
    """The installed program, its environment and the model that its projects talk to."""

    program: Path
    env: dict[str, str]
    folder: Path
    model: FakeModel

    def set_up(self, isolation_s: float) -> None:
        """Write the configuration and register the projects."""
        home = Path(self.env["ISOLA_HOME"])
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "config.yaml").write_text(
            f"isolation_s: {isolation_s}\n"
            f"harness:\n  type: llm\n  base_url: {self.model.url}/v1\n  model: fake-model\n"
        )
        for name, about, aliases in PROJECTS:
            options = [each for alias in aliases for each in ("--alias", alias)]
            self.run("projects", "add", name, "--description", about, *options)

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Run a command to its end and return what it printed; its exit code must be `code`."""
        ran = subprocess.run(
            [str(self.program), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            env=self.env,
        )
        assert ran.returncode == code, f"{arguments}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def json(self, *arguments: str, stdin: str = "", code: int = 0) -> list[dict[str, Any]]:
        """The objects that a command prints with --json."""
        printed = self.run(*arguments, "--json", stdin=stdin, code=code)
        return [json.loads(each) for each in printed.splitlines()]

    def terminal(self, *arguments: str) -> Terminal:
        """The program in a terminal."""
        return Terminal([str(self.program), *arguments], self.env, self.folder)

    def recalled(self, project: str, query: str) -> list[str]:
        """What a project remembers about a query."""
        (found,) = self.json("recall", project, query, "-k", "50")
        return [each["content"] for each in found["memories"]]


def bytes_of(requests: Sequence[Request]) -> str:
    """All that was sent, with JSON's escapes resolved."""
    return "\n".join(json.dumps(each.body, ensure_ascii=False) for each in requests)


def environment(home: Path) -> dict[str, str]:
    """The environment of a person whose everything is below `home`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return env | {"HOME": str(home), "ISOLA_HOME": str(home / "isola")}
