"""`isola chat` as a process over the real Claude Code: questions, deaths, limits, corrections."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.fake_model import FakeModel
from tests.fake_model.script import Fail
from tests.real_cli.chat_world import ASKS, ChatWorld, number_of, texts, write_tool


@pytest.fixture
def chat_world(claude_env: dict[str, str], model: FakeModel, tmp_path: Path) -> ChatWorld:
    return ChatWorld.begin(tmp_path, claude_env, model)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_person_answers_a_permission_at_the_terminal(
    chat_world: ChatWorld, allowed: bool
) -> None:
    made = chat_world.project("infra") / "made.txt"
    with chat_world.chat("--project", "infra", "--text", write_tool(made, "hello")) as terminal:
        shown = terminal.until(lambda shown: shown.rstrip().endswith(ASKS))
        assert "◆ infra asks: Allow Write?  (Write)" in shown
        assert "made.txt" in shown
        assert "content: hello" in shown
        terminal.press("enter")
        terminal.until("nothing else does")
        assert not made.exists()
        terminal.type(number_of("Allow once" if allowed else "Deny", shown) + "\r")
        terminal.until("TOOL-SAID")
        assert terminal.ended() == 0
    assert made.exists() is allowed
    (decision,) = chat_world.decisions()
    assert decision["delivery"] == "ANSWERED"


def test_a_program_is_asked_or_denied(chat_world: ChatWorld) -> None:
    made = chat_world.project("infra") / "made.txt"
    message = ("chat", "--project", "infra", "--text", write_tool(made, "hello"))
    (denied,) = chat_world.json(*message)
    assert (denied["status"], denied["questions"][0]["answer"]) == ("answered", "deny")
    assert not made.exists()
    asked, done = chat_world.json(*message, "--on-question", "ask", stdin="allow\n")
    assert asked["status"] == "needs_answer"
    assert {"allow", "deny"} <= {each["id"] for each in asked["question"]["choices"]}
    assert done["status"] == "answered"
    assert made.read_text() == "hello"


def test_ctrl_c_at_a_question_allows_nothing(chat_world: ChatWorld) -> None:
    made = chat_world.project("infra") / "made.txt"
    with chat_world.chat("--project", "infra", "--text", write_tool(made, "hello")) as terminal:
        terminal.until(lambda shown: shown.rstrip().endswith(ASKS))
        terminal.press("ctrl+c")
        terminal.until("nothing was allowed")
        assert terminal.ended() == 130
    (after,) = chat_world.json("chat", "--text", "@infra next")
    assert after["reply"] == "REPLY: next"
    assert not made.exists()
    first, _ = chat_world.decisions()
    assert first["delivery"] == "FAILED"
    assert "it arrived, then its turn was cut off" in first["error"]


def killed(chat_world: ChatWorld, text: str, *, with_agent: bool) -> None:
    """Start `isola chat`, wait until the model is asked, and kill it with -9."""
    before = len(chat_world.model.requests)
    process = chat_world.start("chat", "--text", text)
    try:
        chat_world.model.wait_for_requests(before + 1, 30)
        family = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert family
    for each in family if with_agent else []:
        each.kill()


def test_a_killed_isola_loses_and_doubles_nothing(chat_world: ChatWorld) -> None:
    """The orphaned agent finishes its turn, and its transcript proves the answer."""
    chat_world.json("chat", "--text", "@billing we decided that invoices are immutable")
    chat_world.run("tick")
    text = "KILLED-7 how do immutable invoices look? [[sleep:2]]"
    killed(chat_world, f"@billing {text}", with_agent=False)
    (after,) = chat_world.json("chat", "--text", "@billing and now")
    assert (after["status"], after["reply"]) == ("answered", "REPLY: and now")
    _, dead, _ = chat_world.decisions()
    assert (dead["delivery"], dead["reply"]) == ("ANSWERED", f"REPLY: {text}")
    (explained,) = chat_world.json("explain", "decision", dead["id"])
    (attempt,) = explained["attempts"]
    assert "record" in attempt["proof"]
    prompts = chat_world.prompts("billing")
    assert [sum(mark in each for each in prompts) for mark in ("KILLED-7", "and now")] == [1, 1]
    assert "isola-context" in next(each for each in prompts if "KILLED-7" in each)
    last = chat_world.requests_of("billing")[-1].body["messages"]
    assert json.dumps(last).count("KILLED-7 how do") == 2  # said once, answered once


def test_isola_and_its_agent_killed_together_leave_no_doubt(chat_world: ChatWorld) -> None:
    chat_world.json("chat", "--text", "@billing begin")
    killed(chat_world, "@billing KILLED-9 a long one [[sleep:3]]", with_agent=True)
    (after,) = chat_world.json("chat", "--text", "@billing and now")
    assert after["status"] == "answered"
    _, dead, _ = chat_world.decisions()
    assert sum("KILLED-9" in each for each in chat_world.prompts("billing")) == 1
    # Its record proves that it had arrived, or that it had not: then it was sent again.
    assert (dead["delivery"], dead["attempt"]) in (("FAILED", 1), ("ANSWERED", 2))


def test_isola_killed_at_a_question_allows_nothing(chat_world: ChatWorld) -> None:
    made = chat_world.project("infra") / "made.txt"
    with chat_world.chat("--project", "infra", "--text", write_tool(made, "hello")) as terminal:
        terminal.until(lambda shown: shown.rstrip().endswith(ASKS))
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.ended() == -signal.SIGKILL
    (after,) = chat_world.json("chat", "--text", "@infra next")
    assert after["reply"] == "REPLY: next"
    assert not made.exists()
    assert sum("made.txt" in each for each in chat_world.prompts("infra")) == 1


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        (429, "rate_limited", "infra has reached a limit"),
        (401, "auth_expired", "infra is not logged in any more"),
    ],
)
def test_a_limit_and_an_expired_login_are_told_with_what_to_do(
    chat_world: ChatWorld, code: int, status: str, says: str
) -> None:
    chat_world.model.next(*[Fail(code, "not now")] * 4)
    (done,) = chat_world.json("chat", "--text", "@infra hello", code=1)
    assert (done["status"], done["error"]["code"], done["reply"]) == (status, status, "")
    chat_world.model.clear_next()
    chat_world.model.next(*[Fail(code, "not now")] * 4)
    printed = chat_world.run("chat", "--text", "@infra hello again", code=1)
    assert says in printed
    assert ("auth login" in printed) is (status == "auth_expired")
    chat_world.model.clear_next()
    resend = done["error"]["details"]["next"].split()[1:]
    (again,) = chat_world.json(*resend)
    assert (again["status"], again["reply"]) == ("answered", "REPLY: hello")


def test_a_correction_lists_the_files_that_stay_changed(chat_world: ChatWorld) -> None:
    made = chat_world.project("billing") / "zebra.txt"
    chat_world.json("chat", "--text", "@billing first things")
    text = f"FOREIGN-5 zebra {write_tool(made, 'stripes')}"
    arguments = ("chat", "--project", "billing", "--on-question", "ask", "--text", text)
    _, wrong = chat_world.json(*arguments, stdin="allow\n")
    assert made.exists()
    chat_world.json("chat", "--text", "@billing later things")
    printed = chat_world.run("correct", wrong["decision_id"], "search")
    assert "billing's session forgot the turn" in printed
    assert f"Files that it changed stay changed: {made}" in printed
    assert f"stay changed: {made}" in chat_world.run("explain", "decision", wrong["decision_id"])
    chat_world.json("chat", "--text", "@billing afterwards")
    last = chat_world.requests_of("billing")[-1].raw.decode()
    assert ["FOREIGN-5" in last, "zebra" in last] == [False, False]
    assert ["first things" in last, "later things" in last] == [True, True]
    assert "FOREIGN-5" in texts(chat_world.requests_of("search"))


@pytest.mark.parametrize(
    ("isolation_s", "why"),
    [(300, "a later turn quotes it"), (0, "later turns had been told of it")],
)
def test_where_its_text_went_further_a_fresh_session_takes_over_and_says_why(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path, isolation_s: int, why: str
) -> None:
    """With an open window only the person quotes it; once it is a memory, the memory does too."""
    chat_world = ChatWorld.begin(tmp_path, claude_env, model, isolation_s=isolation_s)
    foreign = "FOREIGN-6 zebras walk across the long meadow at noon"
    made = chat_world.project("billing") / "zebra.txt"
    chat_world.json("chat", "--text", "@billing first things")
    text = f"@billing {foreign} {write_tool(made, 'stripes')}"
    *_, wrong = chat_world.json("chat", "--on-question", "ask", "--text", text, stdin="allow\n")
    assert made.exists()
    chat_world.run("tick")  # with no window left it is a memory now, whoever was to tick
    chat_world.json("chat", "--text", f"@billing about what I said: {foreign}")
    printed = chat_world.run("correct", wrong["decision_id"], "search")
    assert "billing got a fresh session" in printed
    assert why in printed
    assert f"Files that it changed stay changed: {made}" in printed
    chat_world.json("chat", "--text", "@billing afterwards")
    last = chat_world.requests_of("billing")[-1].raw.decode()
    assert "first things" in last
    assert "isola-context" in last


JUDGE = """
judge:
  type: cli
  command: claude -p
"""


def test_the_agents_own_print_mode_judges_where_the_local_judge_is_unsure(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    answer = {"project": "search", "confidence": 0.98, "reason": "it is about ranking"}
    model.answer = lambda request: (
        json.dumps(answer) if "machines and deploys" in request.user else None
    )
    chat_world = ChatWorld.begin(tmp_path, claude_env, model, more=JUDGE)
    (done,) = chat_world.json("chat", "--text", "why do old pages come first?")
    assert (done["status"], done["project"], done["stage"]) == ("answered", "search", "judgement")
    assert done["reply"] == "REPLY: why do old pages come first?"
    assert "it is about ranking" in done["reason"]
    model.answer = lambda request: (
        "I am not sure, sorry" if "machines and deploys" in request.user else None
    )
    (card,) = chat_world.json("chat", "--text", "the roof of the greenhouse leaks", code=3)
    assert card["status"] == "needs_confirmation"
    assert chat_world.requests_of("search") == [model.requests[1]]


def test_doctor_finds_the_agent_and_what_the_person_must_still_do(chat_world: ChatWorld) -> None:
    (report,) = chat_world.json("doctor", code=2)
    found = {each["id"]: each for each in report["checks"]}
    assert found["claude.default"]["status"] == "pass"
    assert "2.1.332" in found["claude.default"]["found"]
    assert found["claude-login.default"]["status"] == "pass"
    assert found["claude-trust.default"]["status"] == "need_human"
    assert str(chat_world.project("billing")) in found["claude-trust.default"]["fix"]
    assert found["claude-notes.default"]["status"] == "pass"


def test_init_offers_the_folders_used_with_the_agent_after_consent(chat_world: ChatWorld) -> None:
    chat_world.json("chat", "--text", "@billing hello")
    empty = chat_world.folder / "empty"
    empty.mkdir()
    config = chat_world.folder / "new.yaml"
    arguments = ("init", "--path", str(empty), "--config", str(config), "--force")
    without = chat_world.run(*arguments, stdin="n\n")
    assert "billing" not in without
    offered = chat_world.run(*arguments, stdin="y\nall\n")
    assert f"{chat_world.project('billing')}  (used with claude)" in offered
    assert str(chat_world.project("billing")) in config.read_text()
