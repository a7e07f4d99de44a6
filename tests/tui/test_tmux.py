"""The program inside a real tmux: keys, sizes, and what a killed one leaves.

The server is a private one (`-L`), without anybody's configuration.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from isola_tui.bindings import HOME
from isola_tui.keymap import keys_of, swallowed_by

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

PATIENCE_S = 20.0


class Tmux:
    """One window of a private server, with the program in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._socket = f"isola-test-{os.getpid()}-{home.parent.name[-12:]}"
        self._program = [sys.executable, "-m", "isola_tui"]
        size = ("-x", "100", "-y", "30")
        self._do("-f", "/dev/null", "new-session", "-d", *size, "sleep 3600")
        self._do("set-option", "-g", "remain-on-exit", "on")
        self.open()

    def _do(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        env = {key: value for key, value in os.environ.items() if key != "TMUX"}
        done = subprocess.run(
            command,
            env=env | {"LANG": "C.UTF-8", "ISOLA_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        return done.stdout

    def open(self) -> None:
        """Start the program in the window."""
        self._do("respawn-pane", "-k", *self._program)
        self.until("╭")

    def keys(self, *names: str) -> None:
        """Press keys, as tmux names them."""
        self._do("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text."""
        self.keys("-l", text)

    @property
    def text(self) -> str:
        """What the window shows."""
        return self._do("capture-pane", "-p")

    def until(self, wanted: str | Callable[[str], bool]) -> None:
        """Wait until the window shows something."""
        deadline = time.monotonic() + PATIENCE_S
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self.text)):
            assert time.monotonic() < deadline, f"{wanted!r} never came:\n{self.text}"
            time.sleep(0.03)

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def kill_program(self) -> None:
        """End the program as a crash would."""
        os.kill(int(self._do("display-message", "-p", "#{pane_pid}")), signal.SIGKILL)
        self.until("Pane is dead")

    def close(self) -> None:
        """End the server; the program ends with its terminal."""
        program = psutil.Process(int(self._do("display-message", "-p", "#{pane_pid}")))
        self._do("kill-server")
        program.wait(PATIENCE_S)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(
        "projects:\n  - {id: shop, name: shop}\n  - {id: search, name: search}\n",
        encoding="utf-8",
    )
    window = Tmux(home)
    try:
        yield window
    finally:
        window.close()


def test_type_send_correct_and_resize(tmux: Tmux) -> None:
    tmux.type("fix the shop")
    tmux.until("→ shop")
    tmux.keys("Enter")
    tmux.until("first note")
    tmux.keys("C-r", "s", "e", "a", "Enter")
    tmux.until("shop → search")
    for columns, rows in ((60, 15), (160, 45), (80, 24)):
        tmux.resize(columns, rows)
        tmux.until(lambda text: "╭" in text and "╰" in text.splitlines()[-2])
        assert max(map(len, tmux.text.splitlines())) <= columns


def test_a_draft_comes_back_after_a_kill(tmux: Tmux) -> None:
    tmux.type("half a thought")
    tmux.until("half a thought")
    time.sleep(1.0)  # the draft is saved when typing rests; nothing on the screen tells of it
    tmux.kill_program()
    tmux.open()
    tmux.until("half a thought")
    tmux.until("Your draft is back")


def test_a_paste_of_escapes_presses_nothing(tmux: Tmux) -> None:
    tmux._do("set-buffer", "-b", "evil", "one \x1b\r\x07 two \x1b[21~ evil")
    tmux._do("paste-buffer", "-p", "-b", "evil")
    tmux.until("evil")
    assert "which project?" not in tmux.text
    assert "Send another way" not in tmux.text


SHOWS = {
    "menu": "This message",
    "correct": "Move it to which project?",
    "new_project": "Register a project",
    "send_as": "Send another way",
    "why": "Why it went there",
    "help": "Nothing is final",
    "palette": "Search for commands",
    "search": "Search",
    "go_to": "search",
    "lock": "▣",
    "answer": "Nothing needs you",
    "hold": "stays open",
    "previous": "first note",
    "interrupt": "again to quit",
}
"""What stands on the screen when an act's key has arrived, for the keys that change it."""


def as_tmux(key: str) -> str:
    """A key as tmux names it."""
    signs = {"backslash": "\\", "right_square_bracket": "]", "underscore": "_", "slash": "/"}
    *modifiers, name = key.split("+")
    name = signs.get(name, name)
    return f"C-{name}" if modifiers == ["ctrl"] else name.upper() if name[0] == "f" else name


def test_every_safe_key_reaches_its_act(tmux: Tmux) -> None:
    tmux.type("fix the shop")
    tmux.until("→ shop")
    tmux.keys("Enter")
    tmux.until("first note")
    tmux.type("the shop")
    tmux.until("→ shop")
    keys = keys_of(HOME, {})
    for act, shown in SHOWS.items():
        safe = [key for key in keys[act] if not swallowed_by(key)]
        assert safe, act
        for key in safe[:1]:
            tmux.keys(as_tmux(key))
            tmux.until(shown)
            tmux.keys("Escape")
            tmux.until("╭")
            time.sleep(0.2)  # a lone Escape is one only when nothing follows it
            tmux.keys("Escape")
            time.sleep(0.2)
