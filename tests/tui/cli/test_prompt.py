"""`isola chat` without a message: a line, a message; commands for a person."""

from __future__ import annotations

import pytest

from isola_tui.cli import prompt
from isola_tui.cli.questions import Questions
from tests.fake_model.server import FakeModel
from tests.tui.cli.conftest import Isola


def test_every_line_is_a_message_and_every_message_an_object(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    lines = "@billing one\n\n@search 二\n:quit @billing\n@billing @search three\n"
    ran = isola("chat", "--json", stdin=lines.encode())
    assert ran.code == 0
    assert [each["project"] for each in ran.objects] == [
        "billing",
        "search",
        "billing",
        "billing",
        "search",
    ]
    assert {each["status"] for each in ran.objects} == {"answered"}
    assert [each.user for each in model.requests[:3]] == ["one", "二", ":quit"]


def test_a_bad_line_takes_no_other_down(isola: Isola, projects: None) -> None:
    lines = b"@billing one\n@billing\n@billing \xff two\n"
    ran = isola("chat", "--json", stdin=lines)
    assert [each["status"] for each in ran.objects] == ["answered", "failed", "answered"]
    assert ran.objects[1]["error"]["code"] == "invalid_input"
    assert ran.code == 1


def test_the_last_message_is_corrected_and_taken_back(isola: Isola, projects: None) -> None:
    lines = "@billing a question about the index\n:correct search\n:withdraw\n"
    ran = isola("chat", stdin=lines.encode())
    assert "corrected billing → search: " in ran.out
    assert "withdrawn from search: " in ran.out
    first, second = isola("decisions", "--json").json["decisions"]
    assert (first["project"], first["state"]) == ("billing", "CORRECTED")
    assert (second["project"], second["state"]) == ("search", "WITHDRAWN")
    assert (first["rewind"], second["rewind"]) == ("DONE", "DONE")


def test_a_card_is_confirmed_by_command(isola: Isola, projects: None) -> None:
    lines = "the roof of the greenhouse leaks\n:confirm search\n"
    ran = isola("chat", stdin=lines.encode())
    assert "? which project?" in ran.out
    assert "→ search" in ran.out


def test_from_a_pipe_a_number_is_a_message(isola: Isola, projects: None) -> None:
    isola("chat", stdin=b"the roof of the greenhouse leaks\n1\n")
    texts = [each["text"] for each in isola("decisions", "--json").json["decisions"]]
    assert texts == ["the roof of the greenhouse leaks", "1"]


@pytest.mark.parametrize(("answer", "project"), [("2", 1), ("Search", None), ("billing", None)])
def test_a_person_answers_a_card_by_number_or_name(
    isola: Isola,
    projects: None,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    project: int | None,
) -> None:
    monkeypatch.setattr(prompt, "has_terminal", lambda: True)
    said = iter(["the roof of the greenhouse leaks", answer, ":quit"])
    signs: list[str] = []

    def read(sign: str, questions: Questions) -> str | None:
        signs.append(sign)
        return next(said)

    monkeypatch.setattr(prompt, "_read", read)
    isola("chat")
    (decision,) = isola("decisions", "--json").json["decisions"]
    candidates = [each["project"] for each in decision["candidates"]]
    expected = answer.lower() if project is None else candidates[project]
    assert (decision["state"], decision["project"]) == ("TENTATIVE", expected)
    assert signs[1].startswith("[1-")


def test_a_pipe_gets_the_worst_code_of_its_messages(isola: Isola, projects: None) -> None:
    assert isola("chat", stdin=b"@billing one\n").code == 0
    assert isola("chat", stdin=b"the roof of the greenhouse leaks\n@billing one\n").code == 3
    assert isola("chat", stdin=b"@billing\nthe roof of the greenhouse leaks\n").code == 1


def test_a_doubled_colon_sends_a_colon_and_an_unknown_command_sends_nothing(
    isola: Isola, projects: None
) -> None:
    ran = isola("chat", stdin=b"::correct @billing\n:frobnicate\n")
    assert "':frobnicate' is no command" in ran.err
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert decision["text"] == ":correct"


def test_a_refused_credential_is_sent_unstored_by_command(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4e5" * 5
    ran = isola("chat", stdin=f"@billing {secret}\n:unstored\n:unstored\n".encode())
    assert secret in model.requests[0].user
    assert len(model.requests) == 1
    assert secret not in ran.out + ran.err


@pytest.mark.parametrize("command", [":help", ":projects"])
def test_commands_that_only_look(isola: Isola, projects: None, command: str) -> None:
    ran = isola("chat", stdin=f"{command}\n".encode())
    assert "billing" in ran.out or ":correct" in ran.out
    assert isola("decisions", "--json").json == {"decisions": []}


@pytest.mark.parametrize("command", [":correct search", ":withdraw", ":confirm search"])
def test_a_command_without_a_message_says_so(isola: Isola, projects: None, command: str) -> None:
    ran = isola("chat", stdin=f"{command}\n".encode())
    assert ran.err.startswith("isola: ")
    assert ran.code == 0
