"""Bad input of every kind gets a clear answer and loses nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from isola_core.store.sqlite import APPLICATION_ID
from tests.fake_model.script import Behaviour, Fail
from tests.fake_model.server import FakeModel
from tests.faults.conftest import Program

# -- texts


@pytest.mark.parametrize(
    "text", [b"", b" \n\t\r\n", "\u200b\u2060\ufeff".encode(), b"\x1b\x00\x07"]
)
def test_a_blank_message_is_refused_and_not_stored(with_projects: Program, text: bytes) -> None:
    ran = with_projects.run("chat", "-", "--json", stdin=text)
    assert (ran.code, ran.error["code"]) == (1, "invalid_input")
    assert with_projects.decisions() == []


def test_a_megabyte_is_stored_and_sent_whole(with_projects: Program) -> None:
    text = "@billing " + "回滚 the invoice\n" * 55_000
    assert len(text.encode()) > 1_000_000
    ran = with_projects.run("chat", "-", "--json", stdin=text.encode())
    assert (ran.code, ran.json["status"]) == (0, "answered")
    (decision,) = with_projects.decisions()
    assert decision["text"].strip() == text.removeprefix("@billing ").strip()
    listed = with_projects.run("decisions").out
    assert max(map(len, listed.splitlines())) < 1_000


def test_five_megabytes_are_refused_with_what_to_do(with_projects: Program) -> None:
    ran = with_projects.run("chat", "-", stdin=b"@billing " + b"x" * 5 * 2**20)
    assert ran.code == 1
    assert "4,194,304 bytes" in ran.err
    assert "nothing was sent" in ran.err
    assert with_projects.decisions() == []


HOSTILE = (
    "\x1b]52;c;cm0gLXJm\x07 clipboard",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1bc cleared",
    "\x9b31m eight bit \x9d0;title\x9c",
    "[/ [/red] [data: /m?x=bb-609b-] plain [x] yield x[/dim]",
    "[@click=app.bell]press[/] {0} %s $HOME `id` $(id)",
    "\u202egnp.exe\u202c \u2066x\u2069",
    "tab\there\x00null\x08back\x7fdel",
    "lone \ud800 surrogate".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "e\u0301\u200d👩‍👩‍👧 한글 日本語",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_arrives_and_acts_on_no_terminal(
    with_projects: Program, model: FakeModel, text: str
) -> None:
    sent = with_projects.run("chat", "-", "--project", "billing", stdin=text.encode())
    assert sent.code == 0
    decision = with_projects.decisions()[0]["id"]
    shown = [
        sent,
        with_projects.run("decisions"),
        with_projects.run("explain", "decision", decision),
        with_projects.run("correct", decision, "search"),
        with_projects.run("recall", "search", text.replace("\x00", "")),
        with_projects.run("decisions", "--json"),
    ]
    for ran in shown:
        assert ran.code == 0, ran.err
        for each in ran.out + ran.err:
            assert each == "\n" or not ("\x00" <= each < " " or "\x7f" <= each <= "\x9f"), ran.out
            assert not "\u202a" <= each <= "\u202e"
            assert not "\u2066" <= each <= "\u2069"
    visible = [each for each in text if each.isalnum()]
    assert [each for each in model.requests[0].user if each.isalnum()] == visible


@pytest.mark.parametrize("name", ["[/red]", "\x1b[2Jname", "a" * 120, "日本 語", "-x", "../../etc"])
def test_hostile_names_are_registered_and_shown_harmlessly(program: Program, name: str) -> None:
    ran = program.run("projects", "add", "--json", "--", name)
    assert ran.code == 0, ran.out
    project = ran.json["project"]["id"]
    listed = program.run("projects", "list")
    assert "\x1b" not in listed.out
    assert program.run("chat", "--project", project, "--text", "hello").code == 0
    assert program.run("projects", "retire", project).code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("chat", "--project", "bilingg", "--text", "x"), "not_found"),
        (("chat", "--project", "", "--text", "x"), "not_found"),
        (("chat", "--project", "billing/", "--text", "x"), "not_found"),
        (("chat", "--project", "billing/../x", "--text", "x"), "not_found"),
        (("chat", "--text", "x", "--conversation", "\x1b[2J"), "invalid_input"),
        (("confirm", "d-none", "billing"), "not_found"),
        (("confirm", "", "billing"), "not_found"),
        (("withdraw", "%"), "not_found"),
        (("recall", "none", "x"), "not_found"),
        (("session", "reset", "none"), "not_found"),
        (("projects", "retire", "none"), "not_found"),
        (("projects", "add", "BILLING"), "conflict"),
        (("projects", "add", " "), "invalid_input"),
        (("projects", "add", "--name", "--"), "invalid_input"),
        (("projects", "add", "x", "--id", "../x"), "invalid_input"),
        (("projects", "add", "x", "--path", "/"), "invalid_input"),
        (("projects", "add", "x", "--path", "/no/such/folder"), "invalid_input"),
        (("projects", "add", "x", "--harness", "none"), "config"),
    ],
)
def test_unknown_things_are_refused_with_a_code(
    with_projects: Program, arguments: tuple[str, ...], code: str
) -> None:
    ran = with_projects.run(*arguments, "--json")
    assert (ran.code, ran.error["code"]) == (1, code)
    assert ran.error["message"]


def test_a_retired_project_is_refused_and_says_how_to_bring_it_back(
    with_projects: Program,
) -> None:
    with_projects.run("projects", "retire", "billing")
    for arguments in (
        ("chat", "--project", "billing", "--text", "x"),
        ("session", "reset", "billing"),
    ):
        error = with_projects.run(*arguments, "--json").error
        assert error["code"] == "conflict"
        assert "--restore" in error["message"]
    addressed = with_projects.run("chat", "--text", "@billing x", "--json")
    assert addressed.json["project"] != "billing"


# -- configuration


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judge: [", "line"),
        ("{}\n---\n{}\n", "config.yaml"),
        ("\tjudge: local\n", "tab"),
        ("judg: local\nisolation_s: never\n", "isolation_s"),
        ("harness:\n  type: llm\n", "base_url"),
        ("harness:\n  type: llm\n  api_key: sk-x\n", "api_key_env"),
        ("harness:\n  type: nothing\n", "nothing"),
        ("store:\n  path: 7\n", "store.path"),
        ("projects:\n  - name: x\n", "id"),
        ("- a\n- b\n", "expected keys"),
    ],
)
def test_a_broken_configuration_names_the_problem_and_touches_nothing(
    program: Program, text: str, said: str
) -> None:
    program.configure(text)
    ran = program.run("chat", "--text", "hello", "--json")
    if ran.code == 1 and ran.json["error"]["code"] == "config":
        assert said in ran.error["message"]
        assert ran.error["details"]["problems"]
        assert not (program.home / "isola.db").exists()
    else:  # a type of a plugin is known only when it is needed
        assert "nothing" in text


def test_every_problem_is_told_at_once(program: Program) -> None:
    program.configure("judg: local\nisolation_s: never\nauto_at: 7\n")
    ran = program.run("decisions")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 3
    for key in ("judg", "isolation_s", "auto_at"):
        assert key in ran.err


def test_a_named_configuration_that_is_not_there_is_refused(program: Program) -> None:
    ran = program.run("--config", str(program.home / "no.yaml"), "decisions", "--json")
    assert (ran.code, ran.error["code"]) == (1, "config")
    assert "isola init" in ran.error["message"]


def test_a_backend_with_wrong_settings_fails_its_messages_and_keeps_them(
    with_projects: Program,
) -> None:
    with_projects.configure("harness:\n  type: no-such-type\n")
    ran = with_projects.run("chat", "--text", "@billing hello", "--json")
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert "no-such-type" in ran.json["error"]["message"]
    with_projects.configure("harness:\n  type: notebook\n")
    again = with_projects.run("resolve", ran.json["decision_id"], "--resend", "--json")
    assert again.json["status"] == "answered"


# -- databases


def test_a_database_of_a_newer_version_is_left_alone(with_projects: Program) -> None:
    database = with_projects.home / "isola.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = database.read_bytes()
    ran = with_projects.run("chat", "--text", "@billing hello", "--json")
    assert (ran.code, ran.error["code"]) == (1, "store_too_new")
    assert "newer version" in ran.error["message"]
    assert database.read_bytes() == before


@pytest.mark.parametrize("content", [b"this is a text file\n" * 500, b"SQLite format 3\x00 no"])
def test_a_file_that_is_no_database_is_left_alone(program: Program, content: bytes) -> None:
    program.home.mkdir(mode=0o700)
    database = program.home / "isola.db"
    database.write_bytes(content)
    ran = program.run("decisions", "--json")
    assert (ran.code, ran.error["code"]) == (1, "store")
    assert str(database) in ran.error["message"]
    assert database.read_bytes() == content


def test_the_database_of_another_program_is_left_alone(program: Program) -> None:
    program.home.mkdir(mode=0o700)
    with sqlite3.connect(program.home / "isola.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID + 1}")
    connection.close()
    error = program.run("decisions", "--json").error
    assert error["code"] == "store"
    assert "another program" in error["message"]


# -- a model endpoint that misbehaves

MISBEHAVIOUR = (
    Behaviour.REFUSE,
    Behaviour.STALL,
    Behaviour.STALL_MIDWAY,
    Behaviour.CUT,
    Behaviour.MALFORMED,
    Behaviour.EMPTY,
    Behaviour.HTML,
    Behaviour.REDIRECT,
    Fail(500, "boom [/red] \x1b[2J"),
    Fail(429, "slow down"),
    Fail(401, "who are you"),
)
STATUS = {429: "rate_limited", 401: "auth_expired"}


@pytest.mark.parametrize("behaviour", MISBEHAVIOUR, ids=str)
def test_a_misbehaving_model_fails_the_turn_and_keeps_the_message(
    with_projects: Program, model: FakeModel, behaviour: Behaviour | Fail
) -> None:
    model.next(behaviour)
    ran = with_projects.run("chat", "--text", "@billing pay it", "--json")
    status = STATUS.get(behaviour.status, "failed") if isinstance(behaviour, Fail) else "failed"
    assert (ran.code, ran.json["status"], ran.json["reply"]) == (1, status, "")
    assert ran.json["error"]["message"]
    decision = ran.json["decision_id"]
    shown = with_projects.run("explain", "decision", decision)
    assert "\x1b" not in shown.out
    again = with_projects.run("resolve", decision, "--resend", "--json")
    assert (again.code, again.json["reply"]) == (0, "REPLY: pay it")
    (stored,) = with_projects.decisions()
    assert (stored["text"], stored["attempt"]) == ("pay it", 2)


def test_an_endpoint_that_nobody_listens_on(with_projects: Program) -> None:
    with FakeModel() as gone:
        url = gone.url
    with_projects.configure(f"harness:\n  type: llm\n  base_url: {url}/v1\n  model: fake-model\n")
    ran = with_projects.run("chat", "--text", "@billing pay it", "--json")
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert with_projects.decisions()[0]["text"] == "pay it"


@pytest.mark.parametrize("behaviour", [Behaviour.STALL, Behaviour.HTML, Fail(500)], ids=str)
def test_a_judge_that_fails_makes_a_card(
    with_projects: Program, behaviour: Behaviour | Fail
) -> None:
    with FakeModel() as judge:
        judge.next(behaviour)
        with_projects.configure(
            f"judge:\n  type: openai_compat\n  base_url: {judge.url}/v1\n  model: fake-model\n"
            "  timeout_s: 1\n"
        )
        ran = with_projects.run("chat", "--text", "the roof of the greenhouse leaks", "--json")
    assert (ran.code, ran.json["status"]) == (3, "needs_confirmation")
    assert ran.json["reason"]
    confirmed = with_projects.run("confirm", ran.json["decision_id"], "search", "--json")
    assert confirmed.json["status"] == "answered"


def test_a_missing_key_is_named(with_projects: Program, model: FakeModel, tmp_path: Path) -> None:
    with_projects.configure(
        f"harness:\n  type: llm\n  base_url: {model.url}/v1\n  model: m\n  api_key_env: MY_KEY\n"
    )
    ran = with_projects.run("chat", "--text", "@billing pay it", "--json")
    assert (ran.code, ran.json["status"]) == (1, "auth_expired")
    assert "MY_KEY" in ran.json["error"]["message"]
    assert not model.requests
