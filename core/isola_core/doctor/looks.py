"""What each check looks at and what it makes of it. Nothing here changes anything."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from isola_core.doctor.check import CheckStatus, Outcome
from isola_core.doctor.inputs import (
    ProjectFolder,
    SqliteReport,
    StoreReport,
    StuckReport,
    Terminal,
)

PYTHON_MINIMUM: Final = (3, 11)
DISK_LOW: Final = 500 * 1024 * 1024
"""Bytes. Below it a person should know; a tenth of it is too little to go on."""


def passed(found: str) -> Outcome:
    """All is well; `found` says what was seen."""
    return Outcome(CheckStatus.PASS, found)


def look_at_python() -> Outcome:
    """The interpreter that runs this."""
    found = ".".join(str(each) for each in sys.version_info[:3])
    if sys.version_info[:2] >= PYTHON_MINIMUM:
        return passed(f"Python {found}")
    wanted = ".".join(str(each) for each in PYTHON_MINIMUM)
    return Outcome(
        CheckStatus.FAIL,
        f"Python {found}, {wanted} is needed",
        f"Install Python {wanted} or newer.",
    )


def look_at_sqlite(report: SqliteReport) -> Outcome:
    """Version and full text search."""
    fix = "Use a Python whose SQLite is newer, such as one from python.org or `uv python install`."
    if _numbers(report.version) < _numbers(report.minimum):
        found = f"SQLite {report.version}, {report.minimum} is needed"
        return Outcome(CheckStatus.FAIL, found, fix)
    if not report.fts5:
        return Outcome(CheckStatus.FAIL, f"SQLite {report.version} was built without FTS5", fix)
    return passed(f"SQLite {report.version} with FTS5")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".") if each.isdigit())


def look_at_configuration(file: Path, problems: Sequence[str]) -> Outcome:
    """Every problem of the file, or that there is none."""
    if problems:
        found = f"{len(problems)} to repair: " + "; ".join(problems)
        return Outcome(CheckStatus.NEED_HUMAN, found, f"${{EDITOR:-vi}} {shlex.quote(str(file))}")
    if not file.exists():
        return passed(f"no {file}: everything has its default (`isola init` writes one)")
    return passed(str(file))


def look_at_data_folder(folder: Path, database: Path) -> Outcome:
    """The folder and the database: ours, writable, closed to others."""
    quoted = shlex.quote(str(folder))
    try:
        entry = folder.stat()
    except FileNotFoundError:
        return _new_folder(folder)
    except OSError as error:
        return Outcome(CheckStatus.FAIL, f"{folder}: {error.strerror}", f"ls -la {quoted}")
    if not stat.S_ISDIR(entry.st_mode):
        return Outcome(CheckStatus.FAIL, f"{folder} is not a folder", f"mv {quoted} {quoted}.old")
    if entry.st_uid != os.geteuid() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        found = (
            f"{folder} belongs to uid {entry.st_uid} and cannot be written by uid {os.geteuid()}"
        )
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return Outcome(CheckStatus.FAIL, found, f"sudo chown -R $(id -u) {quoted}")
    wide = [each for each in (folder, database) if _is_wide(each)]
    if wide:
        listed = ", ".join(f"{each} ({stat.S_IMODE(each.stat().st_mode):04o})" for each in wide)
        names = " ".join(shlex.quote(str(each)) for each in wide)
        return Outcome(CheckStatus.FAIL, f"others can read {listed}", f"chmod go= {names}")
    return passed(f"{folder}, only for you")


def _new_folder(folder: Path) -> Outcome:
    above = next(each for each in folder.parents if each.exists())
    if os.access(above, os.W_OK | os.X_OK) and above.is_dir():
        return passed(f"{folder} is not there yet; the first start makes it")
    return Outcome(
        CheckStatus.FAIL,
        f"{folder} is not there, and {above} cannot be written",
        "export ISOLA_HOME=$HOME/.isola",
    )


def _is_wide(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def look_at_disk(folder: Path) -> Outcome:
    """Free space where the data folder is or will be."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    found = f"{free / 1024**3:.1f} GB free at {there}"
    if free < DISK_LOW:
        status = CheckStatus.FAIL if free < DISK_LOW // 10 else CheckStatus.NEED_HUMAN
        return Outcome(status, found, "Make room on the disk, or move the data with ISOLA_HOME.")
    return passed(found)


def look_at_store(report: StoreReport, database: Path) -> Outcome:
    """Schema and damage."""
    if report.schema is None:
        return passed(f"{database} is not there yet; the first start makes it")
    if report.damage:
        return Outcome(
            CheckStatus.FAIL,
            f"{database} is damaged: {report.damage}",
            f"Put a backup in its place, or keep it aside and start anew: mv "
            f"{shlex.quote(str(database))} {shlex.quote(str(database))}.damaged",
        )
    if report.schema < report.newest:
        found = (
            f"{database} has schema {report.schema}; the next start brings it to {report.newest}"
        )
        return passed(found)
    return passed(f"{database}, schema {report.schema}, whole")


def look_at_stuck(report: StuckReport) -> Outcome:
    """What waits for a person or for a tick."""
    counts = {
        "deliveries of which nobody knows whether they arrived": report.unknown_deliveries,
        "deliveries that failed": report.failed_deliveries,
        "writes into memory that failed": report.failed_tasks,
        "things that are overdue": report.overdue,
    }
    found = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if not found:
        return passed("nothing waits")
    only_overdue = report.overdue and not (
        report.unknown_deliveries or report.failed_deliveries or report.failed_tasks
    )
    return Outcome(
        CheckStatus.NEED_HUMAN, found, "isola tick" if only_overdue else "isola decisions"
    )


def look_at_folders(projects: Sequence[ProjectFolder]) -> Outcome:
    """Each folder exists and can be entered."""
    gone = [each for each in projects if not each.path.is_dir()]
    if gone:
        found = ", ".join(f"{each.name}: there is no folder {each.path}" for each in gone)
        fix = f"isola projects edit {shlex.quote(gone[0].id)} --path FOLDER"
        return Outcome(CheckStatus.FAIL, found, fix)
    closed = [each for each in projects if not os.access(each.path, os.R_OK | os.X_OK)]
    if closed:
        found = ", ".join(f"{each.name}: {each.path} cannot be read" for each in closed)
        return Outcome(CheckStatus.FAIL, found, f"ls -ld {shlex.quote(str(closed[0].path))}")
    return passed(f"{len(projects)} folders")


def look_at_overlaps(projects: Sequence[ProjectFolder]) -> Outcome:
    """Agents keep a memory of their own by folder: two projects in one would share it."""
    pairs = overlaps(projects)
    if not pairs:
        return passed("each project has its own folder")
    found = ", ".join(
        f"{inner.name} and {outer.name} both use {outer.path}"
        if inner.path.resolve() == outer.path.resolve()
        else f"{inner.name} ({inner.path}) lies inside of {outer.name} ({outer.path})"
        for outer, inner in pairs
    )
    return Outcome(
        CheckStatus.NEED_HUMAN,
        f"{found}: an agent's own memory of the folder reaches both",
        f"isola projects edit {shlex.quote(pairs[0][1].id)} --path FOLDER",
    )


def overlaps(projects: Sequence[ProjectFolder]) -> list[tuple[ProjectFolder, ProjectFolder]]:
    """Pairs (outer, inner) of projects whose folders are the same or one inside of the other."""
    ordered = sorted(((each.path.resolve().parts, each) for each in projects), key=lambda it: it[0])
    above: list[tuple[tuple[str, ...], ProjectFolder]] = []
    found = []
    for parts, project in ordered:
        while above and parts[: len(above[-1][0])] != above[-1][0]:
            above.pop()
        if above:
            found.append((above[-1][1], project))
        above.append((parts, project))
    return found


def look_at_keys(names: Mapping[str, str], environ: Mapping[str, str]) -> Outcome:
    """The variables are set; their values are not looked at."""
    if not names:
        return passed("the configuration needs no key")
    unset = {name: section for name, section in names.items() if not environ.get(name, "").strip()}
    if unset:
        found = ", ".join(f"{name} (for {section}) is not set" for name, section in unset.items())
        return Outcome(CheckStatus.FAIL, found, f"export {next(iter(unset))}=...")
    return passed(f"set: {', '.join(names)}")


def look_at_terminal(terminal: Terminal) -> Outcome:
    """Whether it can draw, in UTF-8 and in how many colours."""
    if not terminal.attached:
        return passed("not run in a terminal, so nothing was looked at")
    if terminal.term in ("", "dumb"):
        found = f"TERM is {terminal.term!r}: the program cannot draw here"
        return Outcome(CheckStatus.FAIL, found, "export TERM=xterm-256color")
    if terminal.encoding.lower().replace("-", "") != "utf8":
        found = f"the encoding is {terminal.encoding or 'unknown'}: signs and Chinese are lost"
        return Outcome(CheckStatus.NEED_HUMAN, found, "export LANG=C.UTF-8")
    colours = _colours(terminal)
    return passed(f"{terminal.term}, UTF-8, {colours}")


def _colours(terminal: Terminal) -> str:
    if terminal.colorterm in ("truecolor", "24bit"):
        return "16 million colours"
    many = any(each in terminal.term for each in ("256", "kitty", "alacritty", "ghostty", "foot"))
    return "256 colours" if many else "16 colours"
