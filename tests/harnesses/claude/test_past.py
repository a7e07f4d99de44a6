"""The folders that `isola init` offers: whose they are, how they are ordered, what is left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from isola_harnesses.claude.past import PastFolder, past_folders


class Past:
    """A home with transcripts and rollouts of the past."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.folder = folder
        self.env = {"HOME": str(self.home)}

    def project(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def claude(self, cwd: Path | str, used: int, name: str = "s", first: str = "") -> None:
        slug = "".join(each if each.isalnum() else "-" for each in str(cwd))
        path = self.home / ".claude" / "projects" / slug / f"{name}.jsonl"
        record = json.dumps({"type": "user", "cwd": str(cwd)})
        self._write(path, f"{first}{record}\n", used)

    def codex(self, cwd: Path, used: int, name: str = "a") -> None:
        path = self.home / ".codex" / "sessions" / "2026" / "11" / "30" / f"rollout-{name}.jsonl"
        line = {"type": "session_meta", "payload": {"id": name, "cwd": str(cwd)}}
        self._write(path, json.dumps(line) + "\n", used)

    def _write(self, path: Path, text: str, used: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (used, used))


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


def test_folders_of_both_agents_come_newest_first(past: Past) -> None:
    one, two, three = (past.project(name) for name in ("one", "two", "three"))
    past.claude(one, 100)
    past.codex(two, 300)
    past.claude(three, 200, "a")
    past.claude(three, 150, "b")
    past.codex(one, 50, "b")
    assert past_folders(past.env) == (
        PastFolder(two, ("codex",), 300_000),
        PastFolder(three, ("claude",), 200_000),
        PastFolder(one, ("claude", "codex"), 100_000),
    )
    assert len(past_folders(past.env, limit=1)) == 1


def test_the_folder_is_read_from_the_records(past: Past) -> None:
    odd = past.project("a-b.c d-项目")
    past.claude(odd, 100, first='not json\n{"type":"queue-operation"}\n')
    assert [each.path for each in past_folders(past.env)] == [odd]


def test_what_is_no_project_is_left_out(past: Past) -> None:
    past.claude(past.home, 100)
    past.claude("/", 100)
    past.claude("/tmp", 100, "t")
    past.claude(past.folder / "gone", 100)
    past.claude("relative", 100)
    past.claude("/\x00bad", 100)
    assert past_folders(past.env) == ()


def test_other_homes_are_followed(past: Past) -> None:
    project = past.project("one")
    past.claude(project, 100)
    past.codex(project, 50)
    env = {
        "HOME": str(past.folder / "nobody"),
        "CLAUDE_CONFIG_DIR": str(past.home / ".claude"),
        "CODEX_HOME": str(past.home / ".codex"),
    }
    assert past_folders(env) == (PastFolder(project, ("claude", "codex"), 100_000),)


def test_without_agents_nothing_is_found(past: Past) -> None:
    assert past_folders(past.env) == ()
