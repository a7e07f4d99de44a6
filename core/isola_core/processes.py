"""Who this process is, and whether another one still lives, behind the port `Processes`.

Leases depend on it. A pid alone is reused, so a process is machine, boot, pid and start time; and
"not alive" is only said where it is certain, because whoever hears it takes the lease over.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Final

import psutil

from isola_core.errors import StoreError
from isola_core.paths import ensure_private_dir, private_open, write_private
from isola_core.ports import ProcessIdentity

MACHINE_FILE: Final = "machine-id"
_SYSTEM_MACHINE_IDS: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_SYSTEM_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE: Final = Path("/proc/self/ns/pid")
_MACHINE_ID: Final = re.compile(r"[0-9a-f]{32}")


class SystemProcesses:
    """The processes of this machine.

    `data_dir` holds the file `machine-id`, a random name that is made once. It is combined with the
    system's own machine id, so that two machines that share a home folder are two machines.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def me(self) -> ProcessIdentity:
        """This process. Asked anew each time: a fork is another process."""
        pid = os.getpid()
        return ProcessIdentity(self.machine, self.boot, pid, started(pid))

    def alive(self, process: ProcessIdentity) -> bool | None:
        """True or False for a process of this machine; None where it cannot be known.

        None: another machine, or another container of this one, whose pids mean nothing here.
        """
        if process.machine != self.machine:
            return None
        boot, _, namespace = process.boot.partition("/")
        my_boot, _, my_namespace = self.boot.partition("/")
        if boot != my_boot:
            return False
        if namespace != my_namespace:
            return None
        if process.pid <= 0:
            return False
        try:
            if started(process.pid) != process.started:
                return False
            status = psutil.Process(process.pid).status()
            return status not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return None

    @cached_property
    def machine(self) -> str:
        """32 hexadecimal characters, the same for every process of this machine and data folder."""
        own = _own_machine_id(self._data_dir)
        return hashlib.sha256(f"{own}\n{_system_machine_id()}".encode()).hexdigest()[:32]

    @cached_property
    def boot(self) -> str:
        """The kernel's boot id, and the pid namespace where there are such things."""
        try:
            boot = _SYSTEM_BOOT_ID.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            boot = f"t{int(psutil.boot_time())}"
        try:
            namespace = re.sub(r"\D", "", str(_PID_NAMESPACE.readlink()))
        except OSError:
            namespace = ""
        return f"{boot}/{namespace}"


def started(pid: int) -> int:
    """When the process started, in milliseconds of a clock that every process reads alike.

    On Linux that is time since boot, as the kernel wrote it down. UTC start times are computed from
    the wall clock: after that was set, the same process would look like another one and lose its
    lease. Raises `psutil.NoSuchProcess`.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19]) * 1000 // os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return round(psutil.Process(pid).create_time() * 1000)


def _own_machine_id(data_dir: Path) -> str:
    path = ensure_private_dir(data_dir) / MACHINE_FILE
    for replace in (False, True):
        try:
            with private_open(path) as file:
                found = file.read(64).strip()
            if _MACHINE_ID.fullmatch(found):
                return found
        except (FileNotFoundError, UnicodeDecodeError):
            pass
        try:
            write_private(path, f"{os.urandom(16).hex()}\n".encode(), replace=replace)
        except FileExistsError:
            continue  # another process was first, or the file is damaged: read it, else replace it
    with private_open(path) as file:
        found = file.read(64).strip()
    if not _MACHINE_ID.fullmatch(found):
        raise StoreError(f"{path} is damaged and could not be replaced. Remove it and start again.")
    return found


def _system_machine_id() -> str:
    for path in _SYSTEM_MACHINE_IDS:
        try:
            found = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if _MACHINE_ID.fullmatch(found):
            return hashlib.sha256(b"isola\n" + found.encode()).hexdigest()
    return ""
