"""`isola chat` with one message: what is sent, printed and returned."""

from __future__ import annotations

import pytest

from isola_core.service.settings import MESSAGE_LIMIT
from tests.fake_model.script import Behaviour, Fail
from tests.fake_model.server import FakeModel
from tests.tui.cli.conftest import Isola

KEYS = {
    "status",
    "state",
    "project",
    "lane",
    "confidence",
    "stage",
    "reason",
    "decision_id",
    "message_id",
    "conversation",
    "reply",
    "candidates",
    "questions",
    "error",
}

SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 5


def test_an_addressed_message_is_sent_and_answered(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--text", "@billing roll back the migration", "--json")
    assert ran.code == 0
    assert ran.json.keys() == KEYS
    assert ran.json["status"] == "answered"
    assert (ran.json["project"], ran.json["stage"]) == ("billing", "explicit")
    assert ran.json["confidence"] == 1.0
    assert ran.json["reply"]
    assert ran.json["error"] is None


def test_a_person_sees_target_and_reply(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--text", "@search 回滚索引")
    first, *reply = ran.out.splitlines()
    assert first.startswith("→ search  1.00 explicit  d-")
    assert reply
    assert ran.err == ""


def test_a_project_and_a_lane_can_be_named(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--project", "Billing/review", "--text", "look at the totals", "--json")
    assert (ran.json["project"], ran.json["lane"]) == ("billing", "review")
    assert ran.json["stage"] == "chosen"


@pytest.mark.parametrize("how", [("-",), ("--text", "-")])
def test_all_of_standard_input_is_one_message(
    isola: Isola, projects: None, model: FakeModel, how: tuple[str, ...]
) -> None:
    text = "first line\n第二行\n\nlast line\n"
    ran = isola("chat", *how, "--project", "billing", "--json", stdin=text.encode())
    assert ran.json["status"] == "answered"
    assert text.rstrip("\n") in model.requests[0].user


def test_an_unclear_message_is_a_card_with_an_exit_code_of_its_own(
    isola: Isola, projects: None
) -> None:
    ran = isola("chat", "--text", "the roof of the greenhouse leaks", "--json")
    assert ran.code == 3
    assert ran.json["status"] == "needs_confirmation"
    assert ran.json["project"] is None
    assert {each["project"] for each in ran.json["candidates"]} <= {"billing", "search"}


def test_a_card_names_the_message_and_how_to_answer(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--text", "the roof of the greenhouse leaks\nmore")
    assert ran.code == 3
    assert '"the roof of the greenhouse leaks"' in ran.out
    assert "isola confirm d-" in ran.out


def test_several_targets_give_an_object_each(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--text", "@billing @search same licence header please", "--json")
    assert [each["project"] for each in ran.objects] == ["billing", "search"]
    assert len({each["message_id"] for each in ran.objects}) == 2
    assert all(each["status"] == "answered" for each in ran.objects)


def test_the_same_event_is_sent_once(isola: Isola, projects: None, model: FakeModel) -> None:
    first = isola("chat", "--text", "@billing pay", "--event-id", "e1", "--json").json
    again = isola("chat", "--text", "@billing pay", "--event-id", "e1", "--json")
    assert again.code == 0
    assert again.json["status"] == "duplicate"
    assert again.json["decision_id"] == first["decision_id"]
    assert again.json["reply"] == first["reply"]
    assert len(model.requests) == 1


def test_without_waiting_it_stays_in_the_outbox(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    ran = isola("chat", "--text", "@billing pay", "--no-wait", "--json")
    assert (ran.code, ran.json["status"], ran.json["reply"]) == (0, "sent", "")
    assert not model.requests
    isola("chat", "--text", "@search other", "--json")
    assert [each.user for each in model.requests] == ["other"]
    isola("tick", "--deliver")
    assert [each.user for each in model.requests] == ["other", "pay"]


def test_a_wait_that_times_out_loses_nothing(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    model.next(Behaviour.STALL)
    ran = isola("chat", "--text", "@billing pay the invoice", "--timeout", "0.3", "--json")
    assert (ran.code, ran.json["status"]) == (0, "sent")
    isola("tick", "--deliver")
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert decision["delivery"] == "ANSWERED"
    assert decision["reply"] == "REPLY: pay the invoice"


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (Behaviour.REFUSE, ""),
        (Behaviour.MALFORMED, ""),
        (Behaviour.EMPTY, ""),
        (Fail(500, "the model is on fire"), "on fire"),
    ],
)
def test_a_failed_turn_is_said_and_can_be_sent_again(
    isola: Isola, projects: None, model: FakeModel, behaviour: Behaviour | Fail, said: str
) -> None:
    model.next(behaviour)
    ran = isola("chat", "--text", "@billing pay", "--json")
    assert (ran.code, ran.json["status"], ran.json["reply"]) == (1, "failed", "")
    error = ran.json["error"]
    assert error["code"] == "delivery_failed"
    assert said in error["message"]
    assert error["message"]
    decision = ran.json["decision_id"]
    assert error["details"]["next"] == f"isola resolve {decision} --resend"
    again = isola("resolve", decision, "--resend", "--json")
    assert (again.code, again.json["status"]) == (0, "answered")
    assert again.json["reply"] == "REPLY: pay"


def test_a_person_reads_what_failed_was_kept_and_comes_next(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    model.next(Fail(500, "broken [/red] \x1b[2J here"))
    ran = isola("chat", "--text", "@billing pay")
    assert ran.code == 1
    assert "[/red]" in ran.err
    assert "\x1b" not in ran.err
    assert "your message is stored; `isola resolve d-" in ran.err


@pytest.mark.parametrize(
    ("code", "status", "says", "then"),
    [
        (429, "rate_limited", "billing has reached a limit", "once the limit has ended"),
        (401, "auth_expired", "billing is not logged in any more", "once you are logged in"),
    ],
)
def test_a_limit_and_an_expired_login_are_states_of_their_own(
    isola: Isola, projects: None, model: FakeModel, code: int, status: str, says: str, then: str
) -> None:
    model.next(Fail(code, "no"), Fail(code, "no"))
    ran = isola("chat", "--text", "@billing pay", "--json")
    assert (ran.code, ran.json["status"], ran.json["error"]["code"]) == (1, status, status)
    (decision,) = isola("decisions", "--json").json["decisions"]
    assert decision["failure"] == status.replace("_", "-")
    ran = isola("chat", "--text", "@billing pay")
    assert says in ran.err
    assert f"sends it again {then}" in ran.err


@pytest.mark.parametrize("text", ["", "  \n ", "\u200b\ufeff", "\x1b\x07"])
def test_a_blank_message_is_refused(isola: Isola, projects: None, text: str) -> None:
    ran = isola("chat", "--text", text, "--json")
    assert ran.code == 1
    assert ran.json.keys() == KEYS
    assert ran.json["error"]["code"] == "invalid_input"
    assert isola("decisions", "--json").json == {"decisions": []}


def test_more_than_the_limit_is_refused_before_it_is_read_whole(
    isola: Isola, projects: None
) -> None:
    ran = isola("chat", "-", "--project", "billing", "--json", stdin=b"a" * (MESSAGE_LIMIT + 10))
    assert ran.code == 1
    assert ran.json["error"]["code"] == "invalid_input"
    assert "4,194,304" in ran.json["error"]["message"]


def test_a_credential_is_refused_or_sent_unstored(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    text = f"@billing the key is {SECRET}"
    refused = isola("chat", "--text", text)
    assert refused.code == 1
    assert SECRET not in refused.out + refused.err
    assert "--unstored" in refused.err
    assert not model.requests
    sent = isola("chat", "--text", text, "--unstored", "--json")
    assert sent.json["status"] == "answered"
    assert SECRET in model.requests[0].user
    assert SECRET not in isola("decisions", "--json").out


def test_conversations_keep_apart(isola: Isola, projects: None) -> None:
    isola("chat", "--text", "@billing start", "--conversation", "one")
    same = isola("chat", "--text", "ok, go on", "--conversation", "one", "--json")
    other = isola("chat", "--text", "ok, go on", "--conversation", "two", "--json")
    assert same.json["project"] == "billing"
    assert other.json["status"] == "needs_confirmation"


@pytest.mark.parametrize(
    "arguments",
    [
        ("-", "--text", "x"),
        ("--event-id", "e"),
        ("--timeout", "0"),
        ("--timeout", "soon"),
        ("file.txt",),
    ],
)
def test_wrong_usage_is_said_before_anything_opens(
    isola: Isola, arguments: tuple[str, ...]
) -> None:
    assert isola("chat", *arguments).code == 64


def test_an_unknown_target_is_refused_with_the_known_ones(isola: Isola, projects: None) -> None:
    ran = isola("chat", "--project", "biling", "--text", "x", "--json")
    assert ran.code == 1
    assert ran.json["error"]["code"] == "not_found"
    assert ran.json["error"]["details"]["candidates"] == ["billing"]
