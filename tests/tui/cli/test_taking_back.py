"""`isola confirm`, `correct`, `withdraw`, `resolve`: what a person does with a decision."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_model.script import Behaviour, Fail
from tests.fake_model.server import FakeModel
from tests.tui.cli.conftest import Isola


def sent(isola: Isola, text: str, *options: str) -> str:
    decision: str = isola("chat", "--text", text, "--json", *options).json["decision_id"]
    return decision


def decision(isola: Isola, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = isola("explain", "decision", wanted, "--json").json["decision"]
    return found


def test_a_correction_moves_the_message_and_says_what_was_undone_and_what_not(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    wrong = sent(isola, "@billing rank the results by date")
    ran = isola("correct", wrong, "search")
    assert ran.code == 0
    assert 'corrected billing → search: "rank the results by date"' in ran.out
    assert "undone: billing's session forgot the turn" in ran.out
    assert "undone: nothing of it will be remembered there" in ran.out
    assert "not undone: billing's backend did receive the text" in ran.out
    assert "REPLY: rank the results by date" in ran.out
    isola("chat", "--text", "@billing next", "--json")
    assert b"rank the results" not in model.requests[-1].raw


def test_a_correction_as_json(isola: Isola, projects: None) -> None:
    wrong = sent(isola, "@billing rank the results by date")
    done = isola("correct", wrong, "search/ui", "--json").json
    assert done.keys() == {"old", "new", "undone", "status", "duplicate", "questions"}
    assert (done["old"]["state"], done["old"]["rewind"]) == ("CORRECTED", "DONE")
    assert (done["new"]["project"], done["new"]["lane"]) == ("search", "ui")
    assert (done["new"]["previous"], done["status"]) == (wrong, "answered")
    assert done["undone"] == {
        "delivery_was": "ANSWERED",
        "stopped_before_delivery": False,
        "interrupting": False,
        "rewinding": True,
        "cancelled_writes": 1,
        "retired_memories": [],
    }


def test_the_same_correction_again_changes_nothing_and_says_so(
    isola: Isola, projects: None
) -> None:
    wrong = sent(isola, "@billing rank the results")
    first = isola("correct", wrong, "search", "--json").json
    again = isola("correct", wrong, "search", "--json")
    assert again.code == 0
    assert again.json["duplicate"] is True
    assert again.json["new"]["id"] == first["new"]["id"]
    assert len(isola("decisions", "--json").json["decisions"]) == 2


def test_an_undelivered_message_is_stopped(isola: Isola, projects: None, model: FakeModel) -> None:
    wrong = sent(isola, "@billing rank the results", "--no-wait")
    ran = isola("correct", wrong, "search", "--no-wait")
    assert "undone: it had not reached billing and was stopped" in ran.out
    assert "not undone" not in ran.out
    isola("tick", "--deliver")
    assert [each.user for each in model.requests] == ["rank the results"]


def test_a_withdrawal_leaves_nothing_behind(isola: Isola, projects: None, model: FakeModel) -> None:
    wrong = sent(isola, "@billing forget me")
    ran = isola("withdraw", wrong, "--json")
    assert ran.json.keys() == {"decision", "text", "undone"}
    assert ran.json["text"] == "forget me"
    assert (ran.json["decision"]["state"], ran.json["decision"]["rewind"]) == ("WITHDRAWN", "DONE")
    isola("chat", "--text", "@billing next")
    assert b"forget me" not in model.requests[-1].raw


def test_a_card_is_answered_by_an_abbreviated_id(isola: Isola, projects: None) -> None:
    card = sent(isola, "the roof of the greenhouse leaks")
    ran = isola("confirm", card[2:7], "Search")
    assert ran.code == 0
    assert ran.out.startswith('"the roof of the greenhouse leaks"\n→ search ')
    again = isola("confirm", card, "search", "--json")
    assert (again.code, again.json["status"]) == (0, "answered")
    other = isola("confirm", card, "billing", "--json")
    assert (other.code, other.json["error"]["code"]) == (1, "conflict")


def test_an_abbreviation_of_several_is_refused_with_all_of_them(
    isola: Isola, projects: None
) -> None:
    first, second = sent(isola, "@billing one"), sent(isola, "@search two")
    for command in (
        ("confirm", "d-", "billing"),
        ("correct", "d-", "search"),
        ("withdraw", "d-"),
        ("resolve", "d-", "--resend"),
        ("explain", "decision", "d-"),
    ):
        ran = isola(*command, "--json")
        assert (ran.code, ran.json["error"]["code"]) == (1, "ambiguous")
        assert set(ran.json["error"]["details"]["candidates"]) == {first, second}
    assert {decision(isola, each)["state"] for each in (first, second)} == {"TENTATIVE"}


@pytest.mark.parametrize(
    "command",
    [
        ("confirm", "d-nosuch", "billing"),
        ("correct", "d-nosuch", "billing"),
        ("withdraw", "d-nosuch"),
        ("resolve", "d-nosuch", "--arrived"),
        ("explain", "decision", "[/red]"),
    ],
)
def test_an_unknown_decision_is_not_found(
    isola: Isola, projects: None, command: tuple[str, ...]
) -> None:
    ran = isola(*command, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "not_found")


def test_an_unstored_message_is_corrected_with_its_text_only(
    isola: Isola, projects: None, model: FakeModel
) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4e5" * 5
    wrong = sent(isola, f"@billing key {secret}", "--unstored")
    refused = isola("correct", wrong, "search", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "text_needed")
    other = isola("correct", wrong, "search", "--text", "another text", "--json")
    assert (other.code, other.json["error"]["code"]) == (1, "invalid_input")
    done = isola("correct", wrong, "search", "--text", f"key {secret}", "--json")
    assert done.json["status"] == "answered"
    assert secret in model.requests[-1].user


def test_nothing_is_resolved_without_saying_how(isola: Isola, projects: None) -> None:
    assert isola("resolve", "d-1").code == 64


def test_what_was_answered_cannot_be_sent_again(isola: Isola, projects: None) -> None:
    fine = sent(isola, "@billing one")
    ran = isola("resolve", fine, "--resend", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "conflict")


def test_a_resend_that_fails_again_says_so(isola: Isola, projects: None, model: FakeModel) -> None:
    model.next(Fail(503, "busy"), Behaviour.EMPTY)
    failed = sent(isola, "@billing one")
    ran = isola("resolve", failed, "--resend")
    assert ran.code == 1
    assert "billing failed" in ran.err
    found = isola("explain", "decision", failed)
    assert "attempt 1  FAILED" in found.out
    assert "attempt 2  FAILED" in found.out
