"""Ends a child and everything it started, and nothing else.

Only provable relatives are touched: members of the group or session that the child led, and
descendants seen while it lived. psutil tells a process from a later one with the same pid.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import psutil

_KILL_WAIT: Final = 2.0
_POLL_S: Final = 0.005


def descendants(pid: int) -> list[psutil.Process]:
    """What a living process started, those that left its group included."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def members(leader: int) -> list[psutil.Process]:
    """The living processes of the group and the session that `leader` led, without itself.

    The leader must not have been waited for, or must be known to have members: only then can its
    number not belong to somebody else.
    """
    found = []
    for pid in psutil.pids():
        if pid == leader:
            continue
        with suppress(OSError, psutil.Error):
            if leader in (os.getpgid(pid), os.getsid(pid)):
                process = psutil.Process(pid)
                if _lives(process):
                    found.append(process)
    return found


def end_all(processes: Iterable[psutil.Process], grace: float) -> list[psutil.Process]:
    """TERM, `grace` seconds, KILL; returns what is alive all the same. Blocks."""
    alive = [each for each in processes if _lives(each)]
    for number, limit in ((signal.SIGTERM, grace), (signal.SIGKILL, _KILL_WAIT)):
        for process in alive:
            with suppress(psutil.Error):
                process.send_signal(number)
        end = time.monotonic() + limit
        while (alive := [each for each in alive if _lives(each)]) and time.monotonic() < end:
            time.sleep(_POLL_S)
    return alive


def _lives(process: psutil.Process) -> bool:
    """Whether it still runs. A zombie does not: who should reap it may never do so."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
