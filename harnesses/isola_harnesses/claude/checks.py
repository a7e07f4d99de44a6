"""Readiness checks for Claude Code: found, logged in, folders trusted, notes not shared.

They look at files and ask the program for its version. No credential is read: that one is there is
all that is looked at.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from isola_core.doctor import Check, CheckStatus, Outcome, ProjectFolder
from isola_core.doctor.check import Supplier, answer
from isola_core.errors import HarnessError
from isola_harnesses.claude.environment import (
    ClaudeSettings,
    child_environment,
    config_home,
    find_binary,
    state_file,
)
from isola_harnesses.claude.harness import program_version

TESTED: Final = (2, 1, 332)
"""The version that the tests drive; what is sent and read was measured on it."""

_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUDS: Final = (
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)
_INSTALL: Final = "npm install -g @anthropic-ai/claude-code"


def claude_checks(
    settings: ClaudeSettings,
    env: Mapping[str, str],
    projects: Supplier[Sequence[ProjectFolder]],
) -> tuple[Check, ...]:
    """The checks of one `claude` harness; `projects` are those whose sessions it serves."""
    binary = shlex.quote(settings.binary)

    async def version() -> Outcome:
        return await look_at_program(settings, env)

    async def trust() -> Outcome:
        return look_at_trust(settings, env, await answer(projects))

    async def notes() -> Outcome:
        return look_at_notes(settings, await answer(projects))

    return (
        Check("claude", "Claude Code is there", version, f"{binary} --version"),
        Check("claude-login", "Claude Code is logged in",
              lambda: look_at_login(settings, env), f"{binary} auth status"),
        Check("claude-trust", "Claude Code may work in the projects' folders", trust,
              f"grep -B9 hasTrustDialogAccepted {shlex.quote(str(state_file(env)))}"),
        Check("claude-notes", "No two projects share Claude Code's own notes", notes,
              "git rev-parse --git-common-dir"),
    )  # fmt: skip


async def look_at_program(settings: ClaudeSettings, env: Mapping[str, str]) -> Outcome:
    """Where the program is and which version it says. Raises `HarnessError` for `env_from`."""
    child = child_environment(settings, env)
    try:
        binary = find_binary(settings, env)
    except HarnessError as error:
        return Outcome(CheckStatus.FAIL, error.message, _INSTALL)
    try:
        said = await program_version(binary, child)
    except HarnessError as error:
        return Outcome(CheckStatus.FAIL, error.message, f"{_INSTALL}@{'.'.join(map(str, TESTED))}")
    found = f"{binary}, {said}"
    numbers = tuple(int(each) for each in re.findall(r"\d+", said)[:3])
    if len(numbers) < 3:
        return Outcome(CheckStatus.NEED_HUMAN, f"{found}: no version is known from that", _INSTALL)
    tested = ".".join(map(str, TESTED))
    if numbers < TESTED:
        older = f"{found}: older than {tested}, with which this was tested"
        return Outcome(CheckStatus.NEED_HUMAN, older, f"{_INSTALL}@{tested}")
    return Outcome(CheckStatus.PASS, found)


def look_at_login(settings: ClaudeSettings, env: Mapping[str, str]) -> Outcome:
    """Whether a login or a key is there; whether it is still good only a message can tell."""
    child = {**env, **{name: env.get(source, "") for name, source in settings.env_from.items()}}
    for name in _KEYS:
        if child.get(name, "").strip():
            return Outcome(CheckStatus.PASS, f"{name} is set")
    for name in _CLOUDS:
        if child.get(name, "").strip():
            return Outcome(CheckStatus.PASS, f"{name} is set: the cloud's own login is used")
    home = config_home(env)
    credentials = home / ".credentials.json"
    if credentials.is_file():
        return Outcome(CheckStatus.PASS, f"{credentials} is there")
    if _json(home / "settings.json").get("apiKeyHelper"):
        return Outcome(CheckStatus.PASS, "settings.json names an apiKeyHelper")
    if sys.platform == "darwin" and _json(state_file(env)).get("oauthAccount"):
        return Outcome(CheckStatus.PASS, "logged in; the login is in the keychain")
    found = f"no login at {credentials}, and none of {', '.join(_KEYS)} is set"
    return Outcome(CheckStatus.FAIL, found, f"{shlex.quote(settings.binary)} auth login")


def look_at_trust(
    settings: ClaudeSettings, env: Mapping[str, str], projects: Sequence[ProjectFolder]
) -> Outcome:
    """Folders for which the person has not yet answered Claude Code's own trust question."""
    known = _json(state_file(env)).get("projects")
    entries = known if isinstance(known, dict) else {}
    accepted = {
        path
        for path, entry in entries.items()
        if isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True
    }
    open_ones = [each for each in projects if not _trusted(each.path, accepted)]
    if not open_ones:
        return Outcome(CheckStatus.PASS, f"{len(projects)} folders are trusted")
    found = "not asked yet: " + ", ".join(f"{each.name} ({each.path})" for each in open_ones)
    fix = f"cd {shlex.quote(str(open_ones[0].path))} && {shlex.quote(settings.binary)}"
    return Outcome(CheckStatus.NEED_HUMAN, found, fix)


def _trusted(path: Path, accepted: set[str]) -> bool:
    """Trust in a folder holds for those inside of it."""
    real = path.resolve()
    return any(str(each) in accepted for each in (real, *real.parents))


def look_at_notes(settings: ClaudeSettings, projects: Sequence[ProjectFolder]) -> Outcome:
    """Claude Code keys its own notes by git repository, worktrees included (measured)."""
    if not settings.auto_memory:
        return Outcome(CheckStatus.PASS, "Claude Code keeps no notes (auto_memory is off)")
    owners: dict[Path, list[ProjectFolder]] = {}
    for project in projects:
        owners.setdefault(notes_root(project.path), []).append(project)
    shared = {root: those for root, those in owners.items() if len(those) > 1}
    if not shared:
        return Outcome(CheckStatus.PASS, "each project has its own")
    found = "; ".join(
        f"{', '.join(each.name for each in those)} share the notes of {root}"
        for root, those in shared.items()
    )
    fix = "Set `auto_memory: false` of the harness, or give each project a repository of its own."
    return Outcome(CheckStatus.NEED_HUMAN, found, fix)


def notes_root(folder: Path) -> Path:
    """The folder by which Claude Code keys its notes: the main repository's root, else the folder.

    A linked worktree counts as its main repository; a repository inside another is its own.
    """
    real = folder.resolve()
    for each in (real, *real.parents):
        mark = each / ".git"
        if mark.is_dir():
            return each
        if mark.is_file():
            return _main_repository(mark) or each
    return real


def _main_repository(mark: Path) -> Path | None:
    """The root of the repository that a linked worktree's `.git` file belongs to."""
    for line in _lines(mark):
        if line.startswith("gitdir:"):
            administration = mark.parent / line.removeprefix("gitdir:").strip()
            for common in _lines(administration / "commondir"):
                shared = (administration / common.strip()).resolve()
                return shared.parent if shared.name == ".git" else None
    return None


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return


def _json(path: Path) -> Mapping[str, object]:
    """A JSON object of a file, empty where there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
