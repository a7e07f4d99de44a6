"""`isola` as a person or a program runs it, with the real Claude Code behind it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.terminal import Terminal
from tests.fake_model import FakeModel, Request

PROGRAM = (sys.executable, "-m", "isola_tui")
PROJECTS = {
    "billing": "invoices and payments",
    "search": "the index and ranking",
    "infra": "machines and deploys",
}
ASKS = "; Ctrl-C leaves it open]"


@dataclass(frozen=True)
class ChatWorld:
    """An installation whose projects are folders below `folder/repos`."""

    folder: Path
    env: dict[str, str]
    model: FakeModel

    @classmethod
    def begin(
        cls,
        folder: Path,
        env: Mapping[str, str],
        model: FakeModel,
        *,
        isolation_s: int = 0,
        more: str = "",
    ) -> ChatWorld:
        """A configuration (`more` is added to it) and registered projects."""
        home = folder / "isola"
        home.mkdir(mode=0o700)
        text = f"isolation_s: {isolation_s}\nharness:\n  type: claude\n{more}"
        (home / "config.yaml").write_text(text)
        world = cls(folder, {**env, "ISOLA_HOME": str(home)}, model)
        for name, about in PROJECTS.items():
            path = world.project(name)
            path.mkdir(parents=True)
            world.run("projects", "add", name, "--path", str(path), "--description", about)
        return world

    def project(self, name: str) -> Path:
        return self.folder / "repos" / name

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        ran = subprocess.run(
            [*PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            env=self.env,
        )
        assert ran.returncode == code, f"{arguments}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout if code == 0 else ran.stdout + ran.stderr

    def json(self, *arguments: str, stdin: str = "", code: int = 0) -> list[dict[str, Any]]:
        printed = self.run(*arguments, "--json", stdin=stdin, code=code)
        return [json.loads(each) for each in printed.splitlines()]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command that runs on; nobody reads what it prints."""
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.env,
        )

    def chat(self, *arguments: str) -> Terminal:
        """`isola chat` in a terminal."""
        return Terminal([*PROGRAM, "chat", *arguments], self.env, self.folder)

    def decisions(self) -> list[dict[str, Any]]:
        (listed,) = self.json("decisions", "--limit", "100")
        found: list[dict[str, Any]] = listed["decisions"]
        return found

    def requests_of(self, project: str) -> list[Request]:
        """The model's requests of one project's sessions; Claude Code tells its folder."""
        mark = f"/repos/{project}"
        return [each for each in self.model.requests if mark in each.raw.decode()]

    def prompts(self, project: str) -> list[str]:
        """What Claude Code's own transcripts of a project hold as said by the person."""
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(self.project(project).resolve()))
        home = Path(self.env["HOME"]) / ".claude" / "projects" / slug
        records = [
            json.loads(line)
            for path in sorted(home.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        contents = [each["message"]["content"] for each in records if each.get("type") == "user"]
        return [each for each in contents if isinstance(each, str)]


def number_of(label: str, shown: str) -> str:
    """The number of a choice on the screen."""
    found = re.findall(rf"^ +(\d+)  {re.escape(label)}", shown, re.MULTILINE)
    assert found, shown
    return str(found[-1])


def write_tool(path: Path, content: str) -> str:
    """A message that makes the fake model write a file."""
    arguments = {"file_path": str(path), "content": content}
    return f"[[tool:Write {json.dumps(arguments)}]]"


def texts(requests: Sequence[Request]) -> str:
    return "\n".join(each.raw.decode() for each in requests)
