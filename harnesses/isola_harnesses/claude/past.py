"""Folders in which Claude Code and Codex were used lately, for `isola init` to offer as projects.

Read only after the person agreed. Only file times and the recorded working folder are looked at;
no conversation is. The folder comes from the records: Claude Code's folder names cannot be turned
back into paths.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isola_harnesses.claude.environment import config_home
from isola_harnesses.claude.transcript import parse, recorded_folder

_FILES_LOOKED_AT: Final = 400
"""The newest files of each agent; a bound on the time that this takes."""

_HEAD: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class PastFolder:
    """A folder that still exists. `last_used` is UTC milliseconds, `agents` of claude, codex."""

    path: Path
    agents: tuple[str, ...]
    last_used: int


def past_folders(env: Mapping[str, str], limit: int = 50) -> tuple[PastFolder, ...]:
    """The folders, newest first. Files that cannot be read are passed over."""
    seen: dict[Path, dict[str, int]] = {}
    never = _never(env)
    for agent, used, recorded in (*_claude(env), *_codex(env)):
        path = _existing(recorded)
        if path is not None and path not in never:
            agents = seen.setdefault(path, {})
            agents[agent] = max(used, agents.get(agent, 0))
    found = [
        PastFolder(path, tuple(sorted(agents)), max(agents.values()))
        for path, agents in seen.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.last_used, each.path))[:limit])


def _claude(env: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for used, path in _newest((config_home(env) / "projects").glob("*/*.jsonl")):
        if (cwd := recorded_folder(path, _HEAD)) is not None:
            yield "claude", used, cwd


def _codex(env: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    configured = env.get("CODEX_HOME")
    home = Path(configured) if configured else Path(env.get("HOME") or Path.home()) / ".codex"
    for used, path in _newest((home / "sessions").glob("*/*/*/rollout-*.jsonl")):
        if (cwd := _codex_folder(path)) is not None:
            yield "codex", used, cwd


def _codex_folder(path: Path) -> str | None:
    """The working folder of a rollout, from the `session_meta` on its first line."""
    try:
        with path.open("rb") as file:
            line = parse(file.readline(_HEAD))
    except OSError:
        return None
    if not line or line.get("type") != "session_meta":
        return None
    payload = line.get("payload")
    cwd = payload.get("cwd") if isinstance(payload, dict) else None
    return cwd if isinstance(cwd, str) else None


def _newest(paths: Iterable[Path]) -> list[tuple[int, Path]]:
    """The newest files with their times in UTC milliseconds."""
    return heapq.nlargest(_FILES_LOOKED_AT, _timed(paths))


def _timed(paths: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    try:
        for path in paths:
            try:
                yield path.stat().st_mtime_ns // 1_000_000, path
            except OSError:
                continue
    except OSError:
        return


def _existing(recorded: str) -> Path | None:
    path = Path(recorded)
    try:
        return path.resolve() if path.is_absolute() and path.is_dir() else None
    except (OSError, ValueError):
        return None


def _never(env: Mapping[str, str]) -> frozenset[Path]:
    """Folders that are never a project: the home, the root, the temporary folder."""
    home = Path(env.get("HOME") or Path.home())
    return frozenset(each.resolve() for each in (home, Path("/"), Path(tempfile.gettempdir())))
