"""Which conversation a shell is."""

from __future__ import annotations

import os
import subprocess
import sys

import pexpect
import pytest

from isola_core.errors import InvalidInput
from isola_tui.conversation import conversation_of

BOOT = "boot-1"
PRINT = (
    "import os; from isola_tui.conversation import conversation_of;"
    "print(conversation_of(None, os.environ, 'boot-1'), flush=True)"
)


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def test_the_command_line_comes_first_and_the_environment_second() -> None:
    env = {"ISOLA_CONVERSATION": "mine"}
    assert conversation_of("given", env, BOOT) == "given"
    assert conversation_of(None, env, BOOT) == "mine"
    assert conversation_of(None, {}, BOOT) not in ("given", "mine")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[2J", "x" * 201])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="--conversation"):
        conversation_of(name, {}, BOOT)


def test_another_boot_is_another_conversation() -> None:
    assert conversation_of(None, {}, BOOT) == conversation_of(None, {}, BOOT)
    assert conversation_of(None, {}, BOOT) != conversation_of(None, {}, "boot-2")


def test_children_of_one_process_without_a_terminal_are_one_conversation(outside: None) -> None:
    def child(*before: str) -> str:
        return subprocess.run(
            [*before, sys.executable, "-c", PRINT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            start_new_session=True,
        ).stdout

    first = child()
    assert first.startswith("proc-")
    assert first == child()
    assert first != child("sh", "-c", '"$@"; true', "sh")


def test_a_terminal_is_a_conversation_and_another_one_is_another(outside: None) -> None:
    def in_terminal() -> list[str]:
        script = f'"{sys.executable}" -c "{PRINT}"'
        terminal = pexpect.spawn(
            "sh", ["-c", f"{script}; {script} </dev/null"], timeout=60, encoding="utf-8"
        )
        try:
            said = terminal.read()
        finally:
            terminal.close(force=True)
        return str(said).split()

    one, also_one = in_terminal()
    other, _ = in_terminal()
    assert one.startswith("tty-")
    assert one == also_one
    assert one != other
