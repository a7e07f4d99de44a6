"""A program in a pseudo terminal, as the benches watch it: when something appears, what it costs."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pexpect

COLUMNS, ROWS = 120, 40
PATIENCE_S = 60.0

BARE = """
from textual.app import App
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static, TextArea

class Bare(App):
    CSS = "#left, #right { width: 30; } #entry { height: 3; } #panes { height: 1fr; }"
    def compose(self):
        with Horizontal(id="panes"):
            yield Static("left", id="left")
            with VerticalScroll():
                yield Static("welcome")
            yield Static("right", id="right")
        yield Static("notice")
        yield TextArea(id="entry", compact=True)
        yield Static("ready to type")
    def on_mount(self):
        self.query_one(TextArea).focus()

Bare().run()
"""
"""A program of Textual's with the widgets of the home screen and nothing behind them."""

BARE_COMMAND = (sys.executable, "-c", BARE)


class Watched:
    """A child in a pseudo terminal whose output is read as it comes."""

    def __init__(self, child: pexpect.spawn[str]) -> None:
        assert child.pid is not None
        self._child = child
        self.pid = child.pid
        self.written = b""

    def read(self, seconds: float) -> None:
        """Take in what comes, for at most so long."""
        ready, _, _ = select.select([self._child.child_fd], [], [], seconds)
        if ready:
            try:
                self.written += os.read(self._child.child_fd, 65_536)
            except OSError:
                return

    def until(self, text: bytes) -> None:
        """Wait until a text has been written."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.written:
            assert time.monotonic() < deadline, f"{text!r} never came: {self.written[-2000:]!r}"
            self.read(0.05)

    def rest(self, seconds: float) -> None:
        """Read for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._child.child_fd, text.encode())


@contextmanager
def watched(command: Sequence[str], env: Mapping[str, str]) -> Iterator[Watched]:
    """Start a program; it is killed at the end."""
    program, *arguments = command
    child = pexpect.spawn(
        program,
        list(arguments),
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env},
        dimensions=(ROWS, COLUMNS),
        timeout=None,
    )
    child.delaybeforesend = None
    try:
        yield Watched(child)
    finally:
        child.kill(9)
        child.wait()
        child.close(force=False)
