"""Which conversation this terminal is: the first slot that no other running terminal holds.

Inertia and drafts belong to a conversation. Two terminals at once must not share them, and a
terminal that is opened again must find its own, also after a crash: so slots are numbered, and a
lock that the system drops with the process says which are taken.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isola_core.paths import ensure_private_dir, open_private_fd

SLOTS: Final = 64
VARIABLE: Final = "ISOLA_CONVERSATION"


@contextmanager
def conversation_slot(runtime_dir: Path, env: Mapping[str, str]) -> Iterator[str]:
    """The conversation's id: `ISOLA_CONVERSATION`, else `terminal-<n>` for as long as we run."""
    if named := env.get(VARIABLE, "").strip():
        yield named
        return
    ensure_private_dir(runtime_dir)
    for number in range(1, SLOTS + 1):
        lock = open_private_fd(runtime_dir / f"terminal-{number}.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            yield f"terminal-{number}"
        finally:
            os.close(lock)
        return
    yield f"terminal-{os.getpid()}"
