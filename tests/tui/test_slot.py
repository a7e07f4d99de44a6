"""Which conversation a terminal is: its own while it runs, the same one when it is opened again."""

from __future__ import annotations

from pathlib import Path

from isola_tui.slot import conversation_slot


def test_two_terminals_at_once_are_two_conversations(tmp_path: Path) -> None:
    with conversation_slot(tmp_path, {}) as first, conversation_slot(tmp_path, {}) as second:
        assert first != second


def test_a_terminal_that_is_opened_again_is_the_same_conversation(tmp_path: Path) -> None:
    with conversation_slot(tmp_path, {}) as first:
        pass
    with conversation_slot(tmp_path, {}) as again:
        assert again == first


def test_the_environment_may_name_it(tmp_path: Path) -> None:
    with conversation_slot(tmp_path, {"ISOLA_CONVERSATION": " night shift "}) as named:
        assert named == "night shift"
    assert not list(tmp_path.iterdir())
