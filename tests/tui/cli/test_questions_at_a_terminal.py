"""An agent asks while a person sits at the terminal: only a number that they type for it answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.tui.cli.conftest import Isola

Chat = Callable[..., Terminal]

PROMPT = "; Ctrl-C leaves it open]"


@pytest.fixture
def chat(agent: Path, tmp_path: Path) -> Chat:
    """`isola chat` in a terminal."""

    def start(*arguments: str) -> Terminal:
        return Terminal(
            [sys.executable, "-m", "isola_tui", "chat", *arguments], dict(os.environ), tmp_path
        )

    return start


def waits(shown: str) -> bool:
    return shown.rstrip().endswith(PROMPT)


def at_the_prompt(shown: str) -> bool:
    return shown.rstrip().endswith("›")


def test_a_number_answers_and_enter_alone_does_not(chat: Chat) -> None:
    with chat("--text", "@billing [[ask]]") as terminal:
        shown = terminal.until(waits)
        assert "◆ billing asks: Allow Bash?  (Bash)" in shown
        assert "  1  Allow once" in shown
        terminal.press("enter")
        terminal.until("a number from 1 to 4 answers; nothing else does")
        terminal.until(waits)
        terminal.type("1\r")
        terminal.until('"behavior": "allow"')
        assert terminal.ended() == 0


def test_what_was_typed_before_the_question_is_no_answer(chat: Chat) -> None:
    with chat("--text", "@billing [[ask]]") as terminal:
        terminal.type("1\r1\r1\r")
        terminal.until(waits)
        terminal.type("4\r")
        terminal.until('"behavior": "deny"')
        assert terminal.ended() == 0


def test_ctrl_d_denies(chat: Chat) -> None:
    with chat("--text", "@billing [[ask]]") as terminal:
        terminal.until(waits)
        terminal.press("ctrl+d")
        terminal.until("denied: the input ended")
        terminal.until('"behavior": "deny"')
        assert terminal.ended() == 0


def test_ctrl_c_ends_the_wait_and_answers_nothing(chat: Chat, isola: Isola) -> None:
    with chat("--text", "@billing [[ask]]") as terminal:
        terminal.until(waits)
        terminal.press("ctrl+c")
        terminal.until("nothing was allowed; the agent's turn ends with this program")
        assert terminal.ended() == 130
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert decision["delivery"] != "ANSWERED"


def test_in_the_prompt_a_question_that_was_left_is_asked_again(chat: Chat) -> None:
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type("@billing [[ask]]\r")
        terminal.until(waits)
        terminal.press("ctrl+c")
        terminal.until("the agent waits on, :answer asks you again")
        terminal.until(lambda shown: shown.rstrip().endswith("[an agent asks: :answer]"))
        terminal.type(":answer\r")
        terminal.until(waits)
        terminal.type("1\r")
        terminal.until('"behavior": "allow"')
        terminal.until(at_the_prompt)
        terminal.type(":answer\r")
        terminal.until("no agent asks anything")
        terminal.press("ctrl+d")
        assert terminal.ended() == 0


def test_the_next_message_asks_what_was_left_first(chat: Chat) -> None:
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type("@billing [[ask]]\r")
        terminal.until(waits)
        terminal.press("ctrl+c")
        terminal.until(lambda shown: shown.rstrip().endswith("[an agent asks: :answer]"))
        terminal.type("@search hello\r")
        terminal.until(lambda shown: shown.count("◆ billing asks") == 2 and waits(shown))
        terminal.type("4 not now\r")
        terminal.until("REPLY: hello")
        terminal.until(at_the_prompt)
        terminal.press("ctrl+d")
        assert terminal.ended() == 0


def test_a_question_that_comes_later_is_told_at_the_prompt(chat: Chat, agent: Path) -> None:
    """The person had stopped waiting."""
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type("@billing [[ask-slowly]]\r")
        terminal.until(lambda _: (agent / "starts.jsonl").exists())
        terminal.press("ctrl+c")
        terminal.until("billing asks: Allow Bash?; :answer answers it")
        terminal.type("@search hello\r")
        terminal.until(waits)
        terminal.type("1\r")
        terminal.until("REPLY: hello")
        terminal.until(at_the_prompt)
        terminal.press("ctrl+d")
        assert terminal.ended() == 0


def test_the_program_is_not_left_with_an_open_question_unseen(chat: Chat) -> None:
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type("@billing [[ask]]\r")
        terminal.until(waits)
        terminal.press("ctrl+c")
        terminal.until(lambda shown: shown.rstrip().endswith("[an agent asks: :answer]"))
        terminal.type("@search hello\r")
        terminal.until(lambda shown: shown.count("◆ billing asks") == 2 and waits(shown))
        terminal.press("ctrl+c")
        terminal.until("REPLY: hello")
        terminal.until(lambda shown: shown.rstrip().endswith("[an agent asks: :answer]"))
        terminal.press("ctrl+d")
        terminal.until(lambda shown: shown.count("◆ billing asks") == 3 and waits(shown))
        terminal.type("4\r")
        assert terminal.ended() == 0


def test_a_question_that_is_gone_gives_the_prompt_back(chat: Chat) -> None:
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type("@billing [[ask-and-die]]\r")
        terminal.until(waits)
        terminal.until("billing failed")
        terminal.until(at_the_prompt)
        terminal.press("ctrl+d")
        assert terminal.ended() == 0


def test_a_running_turn_is_stopped_by_command(chat: Chat, agent: Path) -> None:
    with chat() as terminal:
        terminal.until(at_the_prompt)
        terminal.type(":stop\r")
        terminal.until("no turn of the last message is running")
        terminal.until(at_the_prompt)
        terminal.type("@billing [[silence]]\r")
        terminal.until(lambda _: (agent / "starts.jsonl").exists())
        terminal.press("ctrl+c")
        terminal.until("it goes on while any isola runs")
        terminal.until(at_the_prompt)
        terminal.type(":stop\r")
        terminal.until("billing stopped")
        terminal.until(at_the_prompt)
        terminal.press("ctrl+d")
        assert terminal.ended() == 0
