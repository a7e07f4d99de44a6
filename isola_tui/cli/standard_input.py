"""Standard input by lines, which can be waited for while something else may happen.

Only one reader exists in a process: what it has taken in and not given out yet would be lost for a
second one. `Bell` wakes the main thread out of such a wait.
"""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from typing import Final

_PIECE: Final = 65_536


class Bell:
    """Wakes the main thread, from any thread; what rings before the wait is not lost."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def ring(self) -> None:
        """End the wait that runs, or the next one."""
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def wait(self, descriptor: int | None = None) -> bool:
        """Wait for a ring; True when `descriptor` can be read too."""
        watched = [self._reader] if descriptor is None else [self._reader, descriptor]
        ready, _, _ = select.select(watched, [], [])
        if self._reader in ready:
            with suppress(BlockingIOError):
                while os.read(self._reader, _PIECE):
                    pass
        return descriptor is not None and descriptor in ready

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._reader)
        os.close(self._writer)


class Input:
    """The lines of standard input; bytes that are no UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        self._rest = b""
        self._over = False

    @property
    def has_line(self) -> bool:
        """Whether `taken` has something to give: a line, or the news that the input is over."""
        return b"\n" in self._rest or self._over

    def taken(self) -> str | None:
        """The next line of what came in already, without its end; None at the end of input."""
        line, end, self._rest = self._rest.partition(b"\n")
        if not line and not end:
            return None
        return line.decode("utf-8", "replace").rstrip("\r")

    def wait(self, bell: Bell) -> None:
        """Take in what comes, or return when the bell rings."""
        descriptor = _descriptor()
        if self.has_line:
            return
        if descriptor is None or bell.wait(descriptor):
            self._take()

    def forget(self) -> None:
        """At a terminal: what was typed so far, its end too, was not meant for what comes now."""
        descriptor = _descriptor()
        if descriptor is None or not os.isatty(descriptor):
            return
        import termios  # only here: no such thing on some systems

        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)
        self._rest, self._over = b"", False

    def _take(self) -> None:
        descriptor = _descriptor()
        if descriptor is None:
            piece = b"" if sys.stdin is None else sys.stdin.buffer.readline()
        else:
            piece = os.read(descriptor, _PIECE)
        self._rest += piece
        self._over = not piece


def _descriptor() -> int | None:
    """Its file descriptor; None where a stream without one stands in for it."""
    try:
        return sys.stdin.fileno()
    except (io.UnsupportedOperation, ValueError, AttributeError):
        return None
