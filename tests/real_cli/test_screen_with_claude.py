"""The screen over the real Claude Code: a permission is answered there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.fake_model import FakeModel
from tests.real_cli.chat_world import PROGRAM, ChatWorld, write_tool


@pytest.mark.parametrize("allowed", [True, False])
def test_a_permission_is_answered_on_the_screen(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path, allowed: bool
) -> None:
    chat_world = ChatWorld.begin(tmp_path, claude_env, model)
    made = chat_world.project("infra") / "made.txt"
    with Terminal(PROGRAM, chat_world.env, tmp_path) as terminal:
        terminal.until("infra")
        terminal.type(f"@infra {write_tool(made, 'hello')}")
        terminal.until("(@)")
        terminal.press("enter")
        shown = terminal.until("Allow Write?")
        assert "made.txt" in shown
        label = "Allow once" if allowed else "Deny"
        row = next(each for each in shown.splitlines() if label in each)
        letter = row[: row.index(label)].split()[-1]
        terminal.press("enter")
        terminal.type(letter)  # into the entry: a key alone answers nothing
        assert not made.exists()

        def listening(shown: str) -> bool:
            if "press a letter" in shown:
                return True
            terminal.press("ctrl+t")
            return False

        terminal.until(listening)
        terminal.type(letter)
        terminal.until("TOOL-SAID")
        terminal.press("ctrl+q", "ctrl+q")
        assert terminal.ended() == 0
    assert made.exists() is allowed
    (decision,) = chat_world.decisions()
    assert decision["delivery"] == "ANSWERED"
