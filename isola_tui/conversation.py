"""Which conversation a process belongs to: inertia follows it, and nothing else does.

The name given on the command line, else `ISOLA_CONVERSATION`, else the terminal with its session
leader's start time and the boot id, else the parent process. A terminal's number alone is reused by
the next window, and a pid by the next process, so each comes with the time that tells them apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping
from typing import Final

import psutil

from isola_core.errors import InvalidInput
from isola_core.processes import started
from isola_core.text import safe_label

VARIABLE: Final = "ISOLA_CONVERSATION"
NAME_LIMIT: Final = 200


def conversation_of(named: str | None, env: Mapping[str, str], boot: str) -> str:
    """The conversation of this process.

    `named` is what the command line says; `boot` is the boot id of this machine.

    Raises:
        InvalidInput: a given name is blank, too long or unprintable.
    """
    if named is not None:
        return _checked(named, "--conversation")
    if env.get(VARIABLE):
        return _checked(env[VARIABLE], VARIABLE)
    return _terminal(boot) or _parent(boot)


def _checked(name: str, source: str) -> str:
    if not name.strip() or len(name) > NAME_LIMIT or safe_label(name, NAME_LIMIT) != name:
        raise InvalidInput(
            f"{source} names no conversation: 1 to {NAME_LIMIT} printable characters on one line"
        )
    return name


def _terminal(boot: str) -> str | None:
    """The controlling terminal's conversation; None where there is none, or it cannot be told."""
    try:
        terminal = psutil.Process().terminal()
        leader = os.getsid(0)
        began = started(leader) if terminal else 0
    except (OSError, psutil.Error):
        return None
    return f"tty-{_digest(terminal, leader, began, boot)}" if terminal else None


def _parent(boot: str) -> str:
    parent = os.getppid()
    began = 0
    with contextlib.suppress(psutil.Error):
        began = started(parent)
    return f"proc-{_digest(parent, began, boot)}"


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def has_terminal() -> bool:
    """Whether a person sits at both ends: they type what we read and see what we print."""
    return sys.stdin.isatty() and sys.stdout.isatty()
