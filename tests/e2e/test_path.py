"""The whole path with the installed program: many projects on one line, wrong ones corrected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.path import Installation, bytes_of, environment
from tests.fake_model.script import Behaviour
from tests.fake_model.server import FakeModel

MESSAGES = (
    ("billing", "@billing we decided to round invoices to whole cents"),
    ("search", "@search we use trigrams for the quokka index"),
    ("docs", "@docs the handbook must name every exit code"),
    ("billing", "@计费 发票必须保留十年"),
    ("search", "@搜索 我们决定用结巴分词"),
    ("docs", "@文档 首页要有中文版"),
    ("billing", "@billing how long do we keep a dunning letter?"),
    ("billing", "@billing rerank the zebrafish results by freshness and drop stopwords"),
    ("search", "@search how slow is the quokka index?"),
    ("docs", "@docs which pages name exit codes?"),
    ("billing", "@billing list the unpaid invoices of March"),
    ("search", "@search rebuild the index tonight"),
    ("docs", "@docs 把安装说明移到第一页"),
    ("docs", "@docs 退还客户翡翠贸易的三月账款并作废凭证"),
    ("billing", "@billing 三月的催款单发了吗"),
    ("search", "@search 同义词表放在哪里"),
    ("docs", "@docs publish the handbook"),
    ("billing", "@billing who approved the discount?"),
    ("search", "@search what was decided about tokenising?"),
    ("docs", "@docs is the website up to date?"),
)
"""(project that the text names, text). The eighth and the fourteenth are a person's mistakes."""

MISTAKES = {7: "search", 13: "billing"}
TELLING = {
    7: ("rerank", "zebrafish", "freshness", "stopwords"),
    13: ("退还", "客户", "翡翠", "贸易", "账款", "作废", "凭证"),
}
"""Words of the mistaken messages that no other message has."""


@pytest.fixture
def installation(isola_program: Path, tmp_path: Path) -> Iterator[Installation]:
    with FakeModel() as model:
        installation = Installation(isola_program, environment(tmp_path), tmp_path, model)
        installation.set_up(isolation_s=0)
        yield installation


def test_twenty_messages_and_two_corrections_end_where_they_belong(
    installation: Installation,
) -> None:
    decisions: dict[int, str] = {}

    def send(first: int, last: int) -> None:
        """Some through one program that reads lines, as a script would use it."""
        lines = "".join(f"{text}\n" for _, text in MESSAGES[first:last])
        for number, outcome in enumerate(installation.json("chat", stdin=lines), first):
            assert outcome["status"] == "answered", outcome
            assert outcome["project"] == MESSAGES[number][0]
            assert outcome["reply"].startswith("REPLY: ")
            decisions[number] = outcome["decision_id"]

    send(0, 8)
    installation.run("tick")
    assert installation.recalled("billing", "zebrafish"), "nothing would have been taken back"
    correct(installation, decisions, 7)
    send(8, 14)
    correct(installation, decisions, 13)
    for number in range(14, len(MESSAGES)):  # each in a process of its own
        send(number, number + 1)
    installation.run("tick")

    for number, right in MISTAKES.items():
        wrong = MESSAGES[number][0]
        assert_forgotten(installation, number, wrong)
        assert_at_home(installation, number, right)
    assert_everything_is_listed(installation, decisions)


def correct(installation: Installation, decisions: dict[int, str], number: int) -> None:
    (done,) = installation.json("correct", decisions[number], MISTAKES[number])
    assert (done["old"]["state"], done["old"]["rewind"]) == ("CORRECTED", "DONE")
    assert done["status"] == "answered"
    assert done["new"]["project"] == MISTAKES[number]
    decisions[number] = done["new"]["id"]


def requests_of(installation: Installation, project: str, after: int) -> list[int]:
    """Indexes of the model's requests that carried a later message of one project."""
    later = [text.partition(" ")[2] for _, text in MESSAGES[after + 1 :] if _ == project]
    return [index for index, each in enumerate(installation.model.requests) if each.user in later]


def assert_forgotten(installation: Installation, number: int, wrong: str) -> None:
    """No later request of the wrong project holds a word of it, and its memory holds none."""
    later = requests_of(installation, wrong, number)
    assert later
    sent = bytes_of([installation.model.requests[each] for each in later])
    for word in TELLING[number]:
        assert word not in sent
        assert not any(word in each for each in installation.recalled(wrong, word))


def assert_at_home(installation: Installation, number: int, right: str) -> None:
    """The right project's session and memory have it."""
    text = MESSAGES[number][1].partition(" ")[2]
    later = requests_of(installation, right, number)
    assert text in bytes_of([installation.model.requests[each] for each in later])
    assert text in installation.recalled(right, TELLING[number][0])


def assert_everything_is_listed(installation: Installation, decisions: dict[int, str]) -> None:
    (listed,) = installation.json("decisions", "--limit", "100")
    found = {each["id"]: each for each in listed["decisions"]}
    assert len(found) == len(MESSAGES) + len(MISTAKES)
    for number, decision in decisions.items():
        project, text = MESSAGES[number]
        assert found[decision]["project"] == MISTAKES.get(number, project)
        assert found[decision]["text"] == text.partition(" ")[2]
        assert found[decision]["state"] == "COMMITTED"
    for project in ("billing", "search", "docs"):
        others = {
            text.partition(" ")[2]
            for number, (named, text) in enumerate(MESSAGES)
            if MISTAKES.get(number, named) != project
        }
        remembered = installation.recalled(project, "the index invoices handbook 三月 首页 发票")
        assert not others & set(remembered)


def test_the_same_in_a_terminal_and_again_after_a_restart(installation: Installation) -> None:
    wrong = "rerank the zebrafish results"
    with installation.terminal() as terminal:
        terminal.until(lambda shown: all(each in shown for each in ("billing", "search", "docs")))
        terminal.type(f"@billing {wrong}")
        terminal.until(lambda shown: "→ billing" in shown)
        terminal.press("enter")
        terminal.until(f"REPLY: {wrong}")
        terminal.press("ctrl+r")
        terminal.until("Move it to which project?")
        terminal.type("sear")
        terminal.until(lambda shown: "the handbook" not in shown)
        terminal.press("enter")
        terminal.until("corrected to search")
        terminal.until("billing's session has forgotten it")
        terminal.type("@docs 首页要有中文版")
        terminal.press("enter")
        terminal.until("REPLY: 首页要有中文版")
        terminal.press("ctrl+q")
        assert terminal.ended() == 0
        assert b"\x1b[?1049l" in terminal.raw
    installation.run("chat", "--text", "@billing next invoice")
    assert "zebrafish" not in bytes_of(installation.model.requests[-1:])

    with installation.terminal() as terminal:
        terminal.until(f"REPLY: {wrong}")
        terminal.until("REPLY: 首页要有中文版")
        terminal.type("@search and now?")
        terminal.press("enter")
        terminal.until("REPLY: and now?")
        terminal.press("ctrl+q")
        assert terminal.ended() == 0
    assert "zebrafish" in bytes_of(installation.model.requests[-1:])


def test_without_any_configuration_the_notebook_answers(
    isola_program: Path, tmp_path: Path
) -> None:
    with FakeModel() as model:
        bare = Installation(isola_program, environment(tmp_path), tmp_path, model)
        bare.run("projects", "add", "garden")
        (first,) = bare.json("chat", "--text", "@garden plant the roses in May")
        (second,) = bare.json("chat", "--text", "@garden when do the roses go out?")
        assert first["reply"]
        assert "plant the roses in May" in second["reply"]
        assert not model.seen


def at_the_prompt(shown: str) -> bool:
    """Typing ahead would be echoed twice, and an end of input typed ahead is lost."""
    return shown.rstrip().endswith("›")


def test_a_person_answers_a_card_in_the_interactive_prompt(installation: Installation) -> None:
    with installation.terminal("chat") as terminal:
        terminal.until(at_the_prompt)
        terminal.type("the roof of the greenhouse leaks\r")
        terminal.until("? which project?")
        terminal.until("[1-3, name, or a new message]")
        terminal.type("docs\r")
        terminal.until("REPLY: the roof of the greenhouse leaks")
        terminal.until(at_the_prompt)
        terminal.type(":correct billing\r")
        terminal.until("corrected docs → billing")
        terminal.until("not undone:")
        terminal.until(at_the_prompt)
        terminal.press("ctrl+d")
        assert terminal.ended() == 0
    (listed,) = installation.json("decisions")
    first, second = listed["decisions"]
    assert (first["project"], first["state"]) == ("docs", "CORRECTED")
    assert second["project"] == "billing"


def test_ctrl_c_ends_the_wait_and_loses_nothing(installation: Installation) -> None:
    installation.model.next(Behaviour.STALL)
    with installation.terminal("chat", "--text", "@billing the slow one") as terminal:
        installation.model.wait_for_requests(1)
        terminal.press("ctrl+c")
        assert terminal.ended() == 130
        assert "it goes on while any isola runs" in terminal.text
    (listed,) = installation.json("decisions")
    assert listed["decisions"][0]["text"] == "the slow one"
    installation.run("tick", "--deliver")
    (listed,) = installation.json("decisions")
    assert listed["decisions"][0]["reply"] == "REPLY: the slow one"
