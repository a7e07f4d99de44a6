"""The program in a real terminal: it opens, takes keys, ends, and leaves the terminal as it was."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte
import pytest

PATIENCE_S = 20.0
COLUMNS, ROWS = 100, 30
RESTORED = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l")
OSC = re.compile(rb"\x1b\](\d*)")


class Terminal:
    """A child in a pseudo terminal, and what it has written so far."""

    def __init__(self, child: pexpect.spawn[str]) -> None:
        assert child.pid is not None
        self.child = child
        self.pid = child.pid
        self.written = b""
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def read(self, seconds: float) -> None:
        """Take in what comes, for at most so long."""
        ready, _, _ = select.select([self.child.child_fd], [], [], seconds)
        if not ready:
            return
        try:
            new = os.read(self.child.child_fd, 65_536)
        except OSError:
            return
        self.written += new
        self._stream.feed(new)

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.text}"
            self.read(0.1)

    def press_until(self, key: str, text: str) -> None:
        """Press a key until a text comes: a new card is deaf for half a second."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.text}"
            self.type(key)
            self.read(0.3)

    def type(self, text: str) -> None:
        os.write(self.child.child_fd, text.encode())

    def ended(self, within: float) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        deadline = time.monotonic() + within
        while self.child.isalive():
            assert time.monotonic() < deadline, f"still running:\n{self.text}"
            self.read(0.02)
        self.read(0)
        code = self.child.exitstatus
        return code if code is not None else -(self.child.signalstatus or 0)


@contextmanager
def terminal(home: Path, *arguments: str) -> Iterator[Terminal]:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "isola_tui", *arguments],
        env={**os.environ, "ISOLA_HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        dimensions=(ROWS, COLUMNS),
        timeout=None,
    )
    child.delaybeforesend = None
    screen = Terminal(child)
    try:
        yield screen
    finally:
        if child.isalive():
            os.kill(screen.pid, signal.SIGKILL)
            child.wait()
        child.close(force=False)


def settings(screen: Terminal) -> list[object]:
    return list(termios.tcgetattr(screen.child.child_fd))[:4]


def test_it_opens_and_quits_within_two_seconds(tmp_path: Path) -> None:
    with terminal(tmp_path / "home") as screen:
        before = settings(screen)
        screen.until("One line for all your projects")
        assert settings(screen) != before
        screen.type("\x11")
        assert screen.ended(within=2.0) == 0
        assert all(each in screen.written for each in RESTORED)
        assert settings(screen) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(tmp_path: Path, number: signal.Signals) -> None:
    with terminal(tmp_path / "home") as screen:
        before = settings(screen)
        screen.until("One line for all your projects")
        os.kill(screen.pid, number)
        assert screen.ended(within=2.0) == 128 + number
        assert all(each in screen.written for each in RESTORED)
        assert settings(screen) == before


def test_a_first_project_a_message_and_its_reply(tmp_path: Path) -> None:
    with terminal(tmp_path / "home") as screen:
        screen.until("One line for all your projects")
        screen.type("\x0e")
        screen.until("Register a project")
        screen.type("shop\n")
        screen.until("shop is registered")
        screen.type("the shop needs a basket")
        screen.until("→ shop")
        screen.type("\r")
        screen.until("first note")
        screen.type("half a thought")
        screen.until("half a thought")
        screen.type("\x11")
        screen.until("again to quit")
        screen.type("\x11")
        assert screen.ended(within=2.0) == 0
    with terminal(tmp_path / "home") as screen:
        screen.until("half a thought")
        screen.until("the shop needs a basket")


def test_keys_that_come_in_one_burst_lose_nothing(tmp_path: Path) -> None:
    with terminal(tmp_path / "home") as screen:
        screen.until("One line for all your projects")
        for name in ("shop", "search"):
            screen.type("\x0e")
            screen.until("Register a project")
            screen.type(f"{name}\n")
            screen.until(f"{name} is registered")
        screen.type("fix the shop\rand then")
        screen.until("which project?")  # no frame has shown a target, so nothing was decided
        assert "fix the shop " in screen.text
        screen.until("│ and then ")
        screen.press_until("\x14", "press a letter")
        screen.type("a")
        screen.until("first note")
        screen.type("\x12")
        screen.until("Move it to which project?")
        screen.type("sea\r")
        screen.until("shop → search")
        screen.until("and then")


def test_keys_right_behind_an_opening_key_reach_the_dialog_and_never_the_entry(
    tmp_path: Path,
) -> None:
    with terminal(tmp_path / "home") as screen:
        screen.until("One line for all your projects")
        screen.type("\x12sea\r")  # nothing can be corrected yet: the letters are dropped
        screen.until("There is no message for that yet")
        screen.type("\x0eshop\r\r\r\x0esearch\r\r\r")
        screen.until("search is registered")
        screen.type("fix the shop")
        screen.until("→ shop")
        screen.type("\r")
        screen.until("first note")
        screen.type("\x12sea\rand then")
        screen.until("shop → search")
        screen.until("│ and then ")
        screen.type("\x0fy")
        screen.until("Why it went there")
        screen.type("\x1b")
        screen.until("│ and then ")
    assert screen.text.count("which project?") == 0


def test_nothing_that_was_typed_acts_on_the_terminal(tmp_path: Path) -> None:
    with terminal(tmp_path / "home") as screen:
        screen.until("One line for all your projects")
        screen.type("\x0e")
        screen.until("Register a project")
        screen.type("shop\n")
        screen.until("shop is registered")
        screen.type("\x1b[200~the shop \x1b]52;c;ZXZpbA==\x07 [/ \x9b31m evil\x1b[201~")
        screen.until("evil")
        screen.type("\r")
        screen.until("first note")
        screen.type("\x11")
        assert screen.ended(within=2.0) == 0
    assert b"52" not in OSC.findall(screen.written)
    assert "\x9b" not in screen.written.decode()


def test_a_broken_configuration_is_told_before_the_screen_opens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("judge: {type: oracle}\n", encoding="utf-8")
    with terminal(home) as screen:
        assert screen.ended(within=PATIENCE_S) == 1
        assert b"oracle" in screen.written
        assert b"\x1b[?1049h" not in screen.written


def test_wrong_keys_and_themes_are_told_before_the_screen_opens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    wrong = "theme: drak\nkeys: {corect: ctrl+k, why: ctrl+r}\n"
    (home / "config.yaml").write_text(wrong, encoding="utf-8")
    with terminal(home) as screen:
        assert screen.ended(within=PATIENCE_S) == 1
        for said in (b"did you mean correct?", b"both correct and why", b"did you mean dark?"):
            assert said in screen.written
        assert b"\x1b[?1049h" not in screen.written


def test_without_the_mouse_the_terminal_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("mouse: false\n", encoding="utf-8")
    with terminal(home) as screen:
        screen.until("One line for all your projects")
        assert b"\x1b[?1000h" not in screen.written
        assert b"\x1b[?1003h" not in screen.written


def test_a_selection_is_copied_to_the_terminals_clipboard(tmp_path: Path) -> None:
    with terminal(tmp_path / "home") as screen:
        screen.until("One line for all your projects")
        screen.type("abc")
        screen.until("abc")
        screen.type("\x1b[1;2D\x1b[1;2D\x03")
        deadline = time.monotonic() + PATIENCE_S
        while b"\x1b]52;c;YmM=\x07" not in screen.written:
            assert time.monotonic() < deadline
            screen.read(0.1)
