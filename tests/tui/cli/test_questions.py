"""What agents ask while `isola chat` waits: answered over a pipe, denied without anybody, told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tui.cli.conftest import Isola, Ran

Ask = Callable[..., Ran]


@pytest.fixture
def ask(isola: Isola, agent: Path) -> Ask:
    """Send a message with this word to billing's agent, with these lines as standard input."""

    def run(word: str, *arguments: str, lines: str = "") -> Ran:
        text = f"@billing [[{word}]]"
        return isola("chat", "--text", text, *arguments, stdin=lines.encode())

    return run


def responses(ran: Ran) -> Any:
    """What the agent was answered; it says that itself."""
    return json.loads(ran.objects[-1]["reply"])["response"]["response"]


def test_without_a_terminal_a_question_is_denied_and_told(ask: Ask) -> None:
    ran = ask("ask", "--json")
    assert (ran.code, ran.json["status"]) == (0, "answered")
    assert responses(ran)["behavior"] == "deny"
    (question,) = ran.json["questions"]
    assert question == {
        "id": "r-1",
        "title": "Allow Bash?",
        "tool": "Bash",
        "detail": "ls",
        "choices": [
            {"id": "allow", "label": "Allow once"},
            {"id": "always", "label": "Always allow Bash(ls) in this project"},
            {"id": "mode", "label": "Allow, and use the mode acceptEdits from now on"},
            {"id": "deny", "label": "Deny"},
        ],
        "answer": "deny",
    }


def test_a_denial_is_told_to_people_too(ask: Ask) -> None:
    ran = ask("ask")
    assert "billing asked: Allow Bash? (ls)" in ran.err
    assert "denied" in ran.err
    assert '"behavior": "deny"' in ran.out


@pytest.mark.parametrize(
    "line", ["allow", '{"choice": "allow"}', '{"question":"r-1","choice":"allow"}']
)
def test_a_program_answers_with_the_next_line(ask: Ask, line: str) -> None:
    ran = ask("ask", "--json", "--on-question", "ask", lines=f"{line}\n")
    asked, done = ran.objects
    assert (asked["status"], asked["project"]) == ("needs_answer", "billing")
    assert asked["decision_id"] == done["decision_id"]
    assert asked["question"]["id"] == "r-1"
    assert responses(ran)["behavior"] == "allow"
    assert [each["answer"] for each in done["questions"]] == ["allow"]


def test_a_program_denies_in_words(ask: Ask) -> None:
    line = json.dumps({"choice": "deny", "text": "use make"})
    ran = ask("ask", "--json", "--on-question", "ask", lines=line + "\n")
    assert responses(ran) == {"behavior": "deny", "message": "use make"}


@pytest.mark.parametrize(
    "wrong",
    ["", "  ", "yes", "1", "ALLOW", "[]", "{", '{"choice": ["allow"]}', '{"choice": "allow", "text": 1}',
     '{"question": "r-7", "choice": "allow"}', "allow,deny", "deny allow"],
)  # fmt: skip
def test_whatever_names_no_choice_allows_nothing(ask: Ask, wrong: str) -> None:
    ran = ask("ask", "--json", "--on-question", "ask", lines=f"{wrong}\n")
    first, again, done = ran.objects
    assert first["error"] is None
    assert again["status"] == "needs_answer"
    assert again["error"]["code"] == "invalid_input"
    assert (done["status"], done["questions"][0]["answer"]) == ("answered", "deny")


def test_the_end_of_the_input_denies(ask: Ask) -> None:
    ran = ask("ask", "--json", "--on-question", "ask")
    assert [each["status"] for each in ran.objects] == ["needs_answer", "answered"]
    assert responses(ran)["behavior"] == "deny"


def test_questions_come_one_after_the_other(ask: Ask) -> None:
    ran = ask("ask-twice", "--json", "--on-question", "ask", lines="allow\ndeny\n")
    ids = [each["question"]["id"] for each in ran.objects[:-1]]
    assert ids == ["r-1", "r-2"]
    assert [each["answer"] for each in ran.objects[-1]["questions"]] == ["allow", "deny"]


def test_answers_and_messages_share_the_lines_of_a_program(isola: Isola, agent: Path) -> None:
    lines = "@billing [[ask]]\nallow\n@search hello\n"
    ran = isola("chat", "--json", "--on-question", "ask", stdin=lines.encode())
    assert [each["status"] for each in ran.objects] == ["needs_answer", "answered", "answered"]
    assert ran.objects[2]["reply"] == "REPLY: hello"
    assert ran.objects[2]["questions"] == []


def test_lines_that_wait_already_are_no_answers_by_default(isola: Isola, agent: Path) -> None:
    lines = "@billing [[ask]]\n@search allow\n"
    ran = isola("chat", "--json", stdin=lines.encode())
    assert [each["status"] for each in ran.objects] == ["answered", "answered"]
    assert ran.objects[0]["questions"][0]["answer"] == "deny"


def test_a_person_behind_a_pipe_answers_by_number(ask: Ask) -> None:
    ran = ask("ask", "--on-question", "ask", lines="\n4x\n9\n1 please\n4 use make instead\n")
    assert "◆ billing asks: Allow Bash?  (Bash)" in ran.out
    assert "    ls" in ran.out
    assert "  2  Always allow Bash(ls) in this project" in ran.out
    assert ran.err.count("a number from 1 to 4 answers") == 3
    assert ran.err.count("takes no words") == 1
    assert '"message": "use make instead"' in ran.out


def test_the_agents_own_questions_take_several_choices_and_words(ask: Ask) -> None:
    ran = ask("choose", "--on-question", "ask", lines="3\n3 neither of them\n1,3\n")
    assert "◆ billing asks: Which?" in ran.out
    assert "say it behind the number: 3 YOUR WORDS" in ran.err
    assert '"Which?": "neither of them"' in ran.out
    assert '"What else?": "X, Z"' in ran.out


@pytest.fixture
def silent_caller(agent: Path) -> Callable[..., list[Any]]:
    """Run `isola chat --on-question ask` with a pipe that stays open and brings no answer."""

    def run(word: str, *arguments: str) -> list[Any]:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "isola_tui", "chat", "--json", "--on-question", "ask"]
        try:
            ran = subprocess.run(
                [*command, "--text", f"@billing [[{word}]]", *arguments],
                stdin=reader,
                capture_output=True,
                text=True,
                timeout=60,
            )
        finally:
            os.close(reader)
            os.close(writer)
        return [json.loads(each) for each in ran.stdout.splitlines()]

    return run


def test_a_question_whose_agent_dies_keeps_nobody_waiting(
    silent_caller: Callable[..., list[Any]],
) -> None:
    asked, done = silent_caller("ask-and-die")
    assert (asked["status"], done["status"]) == ("needs_answer", "failed")
    assert done["questions"] == []


def test_a_question_that_the_agent_takes_back_is_not_open_any_more(
    silent_caller: Callable[..., list[Any]],
) -> None:
    *_, done = silent_caller("withdraw", "--timeout", "2")
    assert (done["status"], done["questions"]) == ("sent", [])


def test_a_time_out_ends_the_wait_for_an_answer(
    silent_caller: Callable[..., list[Any]], isola: Isola
) -> None:
    asked, done = silent_caller("ask", "--timeout", "2")
    assert (asked["status"], done["status"]) == ("needs_answer", "sent")
    assert [each["answer"] for each in done["questions"]] == [None]
    assert isola("tick", "--deliver", "--json").code == 0
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert decision["delivery"] in ("ANSWERED", "FAILED")
    assert "allow" not in decision["reply"]


def test_a_correction_that_waits_answers_questions_too(isola: Isola, agent: Path) -> None:
    first = isola("chat", "--text", "@billing [[ask]]", "--no-wait", "--json").json
    arguments = ("correct", first["decision_id"], "search", "--json", "--on-question", "ask")
    asked, done = isola(*arguments, stdin=b"allow\n").objects
    assert (asked["status"], asked["project"]) == ("needs_answer", "search")
    assert [each["answer"] for each in done["questions"]] == ["allow"]


def test_a_tick_that_delivers_denies_and_ends(isola: Isola, agent: Path) -> None:
    isola("chat", "--text", "@billing [[ask]]", "--no-wait")
    assert isola("tick", "--deliver").code == 0
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert '"behavior": "deny"' in decision["reply"]


def test_text_of_an_agent_cannot_act_on_the_terminal(ask: Ask) -> None:
    ran = ask("ask-odd", "--on-question", "ask", lines="2\n")
    assert "\x1b" not in ran.out + ran.err
    assert "\u202e" not in ran.out + ran.err
    assert "◆ billing asks: Allow Bash" in ran.out
    assert "[/red]" in ran.out


def test_a_program_that_waits_for_its_next_line_leaves_no_other_waiting(
    isola: Isola, agent: Path
) -> None:
    """It holds the session's agent, so what others send there runs in it."""
    holder = subprocess.Popen(
        [sys.executable, "-m", "isola_tui", "chat", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("@billing hello\n")
        holder.stdin.flush()
        assert json.loads(holder.stdout.readline())["status"] == "answered"
        ran = isola("chat", "--text", "@billing [[ask]]", "--json", "--timeout", "30")
        assert ran.json["status"] == "answered"
        assert responses(ran)["behavior"] == "deny"
        assert len((agent / "starts.jsonl").read_text().splitlines()) == 1
        holder.stdin.close()
    assert holder.returncode == 0
