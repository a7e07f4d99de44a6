"""Finds git repositories below a folder, within bounds, and what they may be called."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isola_core.secrets import find_secrets
from isola_core.text import normalise_message, safe_label

DEPTH: Final = 4
"""Levels below the folder that are looked at."""

FOLDERS: Final = 20_000
"""Folders that are looked at in all: a bound on the time that this takes."""

FOUND: Final = 200

_NEVER: Final = frozenset(
    {"node_modules", "site-packages", "__pycache__", "venv", "target", "vendor", "build", "dist"}
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search brought; `cut` says that a bound ended it early."""

    folders: tuple[Path, ...]
    cut: bool


def find_repositories(top: Path) -> Found:
    """The git repositories at or below `top`, by path. Links are not followed.

    Worktrees are left out (they belong to their repository), and so is whatever lies inside of a
    repository.
    """
    found: list[Path] = []
    waiting = deque([(top, 0)])
    looked_at = 0
    while waiting:
        folder, depth = waiting.popleft()
        looked_at += 1
        if looked_at > FOLDERS or len(found) >= FOUND:
            return Found(tuple(sorted(found)), cut=True)
        git = folder / ".git"
        if git.is_dir():
            found.append(folder)
        elif depth < DEPTH and not git.is_file():
            waiting.extend((each, depth + 1) for each in _subfolders(folder))
    return Found(tuple(sorted(found)), cut=False)


def _subfolders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                each.name
                for each in entries
                if not each.name.startswith(".")
                and each.name not in _NEVER
                and each.is_dir(follow_symlinks=False)
            )
    except OSError:
        return
    for name in names:
        yield folder / name


def description_of(folder: Path) -> str:
    """One line about the project: the first sentence of prose in its README, "" without one."""
    for name in ("README.md", "README.rst", "README.txt", "README"):
        with suppress(OSError), (folder / name).open("rb") as file:
            text = normalise_message(file.read(8_192).decode("utf-8", "replace"))
            return _first_prose(text)
    return ""


def _first_prose(text: str) -> str:
    for each in text.splitlines():
        words = each.strip()
        if len(words) > 20 and words[0].isalnum():
            label = safe_label(words, 200)
            return "" if find_secrets(label) else label
    return ""
