"""A real pseudo terminal with the program in it: keys go in, a screen comes out."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pexpect
import pyte

LIMIT_S: Final = 30.0

_NOT_FOR_PYTE: Final = re.compile(
    rb"\x1b\[[<>=][0-9;:]*[A-Za-z]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*\$?[pqtu]"
    rb"|\x1b[P_^X][^\x1b]*\x1b\\|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
"""Sequences that pyte would print as text: keyboard protocol, mode questions, strings."""

_UNFINISHED: Final = re.compile(
    rb"\x1b(?:\[[0-9;:<>=?$ ]*|[P_^X\]][^\x07\x1b]*(?:\x1b)?)?\Z|[\xc2-\xf4][\x80-\xbf]{0,2}\Z"
)

KEYS: Final = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "f5": "\x1b[15~",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}


class Terminal:
    """One program in a terminal of `columns` x `rows`; a context manager that ends it."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 120,
        rows: int = 40,
    ) -> None:
        self.raw = bytearray()
        """Everything that the program has written."""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._held = b""
        self._child: pexpect.spawn[bytes] = pexpect.spawn(
            argv[0],
            list(argv[1:]),
            env={**env, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            cwd=str(cwd),
            dimensions=(rows, columns),
            timeout=LIMIT_S,
        )
        self._child.delaybeforesend = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child.isalive() and self._child.pid is not None:
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.close(force=True)

    @property
    def pid(self) -> int:
        """The program's process id."""
        assert self._child.pid is not None
        return self._child.pid

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join(each.rstrip() for each in self._screen.display)

    def press(self, *keys: str) -> None:
        """Press named keys."""
        for key in keys:
            self._child.send(KEYS[key])

    def type(self, text: str) -> None:
        """Type a text."""
        self._child.send(text)

    def until(self, wanted: str | Callable[[str], object]) -> str:
        """Read until the screen shows `wanted` or satisfies it; the screen's text."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            shown = self.text
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"never came: {wanted!r}\n{shown}")

    def ended(self) -> int:
        """Read to the end; the exit code, minus the signal's number where one ended it."""
        deadline = time.monotonic() + LIMIT_S
        while self._read():
            if time.monotonic() > deadline:
                raise AssertionError(f"it does not end:\n{self.text}")
        self._child.wait()
        if self._child.exitstatus is not None:
            return int(self._child.exitstatus)
        return -int(self._child.signalstatus or 0)

    def _read(self) -> bool:
        """Take in what is there, waiting a moment; False at the end."""
        try:
            piece: bytes = self._child.read_nonblocking(65536, timeout=0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        whole = self._held + piece
        unfinished = _UNFINISHED.search(whole)
        cut = unfinished.start() if unfinished else len(whole)
        self._held = whole[cut:]
        self._stream.feed(_NOT_FOR_PYTE.sub(b"", whole[:cut]))
        return True
