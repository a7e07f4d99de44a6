"""Remembers running children on disk, so that those that outlive a killed program are found.

One file a session, private, with the child's pid and start time and the program's own. Only a
process that such a file names, whose pid *and* start time and boot agree, is ever ended, and only
when the program that started it is gone.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from isola_core.errors import HarnessError
from isola_core.paths import ensure_private_dir, write_private
from isola_core.ports import SessionRef
from isola_core.processes import started
from isola_harnesses import process_group

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_GRACE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    started: int
    owner: int
    owner_started: int
    boot: str


class Leftovers:
    """The children of one harness's sessions."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the harness's own and private; it is made when it is needed."""
        self._folder = folder

    def note(self, session: SessionRef, pid: int) -> None:
        """A child of `session` runs now."""
        me = os.getpid()
        try:
            entry = _Entry(pid, started(pid), me, started(me), _boot())
        except psutil.Error:
            return
        content = json.dumps(
            {name: getattr(entry, name) for name in _Entry.__dataclass_fields__}
        ).encode()
        ensure_private_dir(self._folder)
        write_private(self._path(session), content, replace=True)

    def forget(self, session: SessionRef) -> None:
        """The child of `session` is gone."""
        with suppress(OSError):
            self._path(session).unlink(missing_ok=True)

    def end(self, session: SessionRef) -> str:
        """End what a dead program left of `session`; says so, or "". Blocks.

        Raises `HarnessError` while another living program runs a child of this session.
        """
        entry = self._read(session)
        if entry is None:
            return ""
        if entry.boot != _boot() or not _is(entry.pid, entry.started):
            left = process_group.members(entry.pid) if self._group_is_ours(entry) else []
        elif _is(entry.owner, entry.owner_started):
            if entry.owner == os.getpid():
                return ""
            raise HarnessError(
                f"Session {session.key} is in use: process {entry.owner} runs its command "
                f"(pid {entry.pid}). Wait for it or end it."
            )
        else:
            leader = psutil.Process(entry.pid)
            left = [leader, *process_group.descendants(entry.pid)]
            left += process_group.members(entry.pid)
        alive = process_group.end_all(set(left), _GRACE_S)
        self.forget(session)
        if alive:
            pids = ", ".join(str(each.pid) for each in alive)
            raise HarnessError(f"Processes {pids} of session {session.key} cannot be ended.")
        if not left:
            return ""
        return f"ended {len(left)} process(es) that a killed program left behind (pid {entry.pid})"

    def _group_is_ours(self, entry: _Entry) -> bool:
        """The leader is gone, its owner too, and nobody else has got its number since."""
        if entry.boot != _boot() or _is(entry.owner, entry.owner_started):
            return False
        return not psutil.pid_exists(entry.pid)

    def _read(self, session: SessionRef) -> _Entry | None:
        try:
            found = json.loads(self._path(session).read_bytes())
            entry = _Entry(**found)
        except (OSError, ValueError, TypeError):
            return None
        numbers = (entry.pid, entry.started, entry.owner, entry.owner_started)
        return entry if all(isinstance(each, int) and each > 0 for each in numbers) else None

    def _path(self, session: SessionRef) -> Path:
        name = hashlib.sha256(session.id.encode()).hexdigest()[:24]
        return self._folder / f"{name}.json"


def _is(pid: int, start: int) -> bool:
    """Whether this very process still runs."""
    try:
        return started(pid) == start and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _boot() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return str(int(psutil.boot_time()))
