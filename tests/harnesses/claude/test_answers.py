"""Receipt, failures and questions, as the scripted program gives them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from isola_core.errors import InvalidInput, NotFound
from isola_core.ports import FailureKind, QuotedContext, ReceiptState, SessionState
from tests.harnesses.claude.conftest import Desk, until


async def test_a_text_that_the_transcript_does_not_have_is_not_received(desk: Desk) -> None:
    result = await desk.send("[[unrecorded]]")
    assert (result.ok, result.received) == (True, False)


async def test_another_text_under_our_id_is_not_received(desk: Desk) -> None:
    message = desk.message("[[altered]]")
    result = await desk.send(message)
    assert (result.ok, result.received) == (True, False)
    receipt = await desk.harness.confirm(desk.session, message)
    assert receipt.state is ReceiptState.UNKNOWN


async def test_the_same_delivery_is_answered_from_the_record(desk: Desk) -> None:
    message = desk.message("once")
    first = await desk.send(message)
    again = await desk.send(message)
    assert (again.ok, again.reply, again.received) == (True, first.reply, True)
    assert desk.transcript.read_text().count('"once"') == 1


@pytest.mark.parametrize("text", ["go on", "/status of it", "<isola-context>"])
async def test_a_message_is_proved_though_its_quoted_context_is_forgotten(
    desk: Desk, text: str
) -> None:
    """Only the message survives our own death; what was recalled for it does not."""
    message = desk.message(text)
    context = QuotedContext(("we use Postgres\n</isola-context>",), "the billing service")
    await desk.send(replace(message, context=context))
    receipt = await desk.harness.confirm(desk.session, message)
    assert receipt.state is ReceiptState.ANSWERED
    other = replace(message, text=f"{text}!")
    assert (await desk.harness.confirm(desk.session, other)).state is ReceiptState.UNKNOWN


async def test_a_damaged_transcript_settles_only_what_it_holds(desk: Desk) -> None:
    known, unknown = desk.message("known"), desk.message("unknown")
    await desk.send(known)
    await desk.harness.close()
    with desk.transcript.open("a") as file:
        file.write('{"type":"user","uuid":"cut of')
    assert (await desk.harness.confirm(desk.session, known)).state is ReceiptState.ANSWERED
    assert (await desk.harness.confirm(desk.session, unknown)).state is ReceiptState.UNKNOWN


async def test_a_failed_turn_is_received_and_has_no_reply(desk: Desk) -> None:
    message = desk.message("[[limit]]")
    await desk.send(message)
    receipt = await desk.harness.confirm(desk.session, message)
    assert (receipt.state, receipt.reply) == (ReceiptState.RECEIVED, "")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("limit", FailureKind.RATE_LIMITED),
        ("login", FailureKind.AUTH_EXPIRED),
        ("not-logged-in", FailureKind.AUTH_EXPIRED),
        ("exit", FailureKind.ERROR),
    ],
)
async def test_failures_have_their_kind_and_no_reply(
    desk: Desk, word: str, kind: FailureKind
) -> None:
    result = await desk.send(f"[[{word}]]")
    assert (result.ok, result.failure, result.reply) == (False, kind, "")
    assert result.error


async def test_a_limit_says_when_it_ends(desk: Desk) -> None:
    result = await desk.send("[[limit]]")
    assert result.meta["limits"] == {"resetsAt": 1_900_000_000}
    assert result.error == "You've hit your limit (the limit ends at 2030-03-17 17:46 UTC)"


@pytest.mark.parametrize("word", ["login", "not-logged-in"])
async def test_an_expired_login_says_how_to_log_in(desk: Desk, word: str) -> None:
    result = await desk.send(f"[[{word}]]")
    assert "/login (log in again with `claude auth login`, or renew the key)" in result.error


async def test_a_permission_offers_what_the_agent_suggests(desk: Desk) -> None:
    sending = desk.sending("[[ask]]")
    await until(lambda: desk.questions)
    (question,) = desk.questions
    assert question.title == "Allow Bash?"
    assert question.detail == "ls"
    assert dict(question.choices) == {
        "allow": "Allow once",
        "always": "Always allow Bash(ls) in this project",
        "mode": "Allow, and use the mode acceptEdits from now on",
        "deny": "Deny",
    }
    status = await desk.harness.ensure_session(desk.session)
    assert status.state is SessionState.NEEDS_USER
    await desk.harness.answer(status.session, question.id, "always")
    reply = json.loads((await sending).reply)
    response = reply["response"]["response"]
    assert response["behavior"] == "allow"
    assert [each["type"] for each in response["updatedPermissions"]] == ["addRules"]
    assert desk.questions == ()


async def test_a_denial_carries_the_persons_words(desk: Desk) -> None:
    sending = desk.sending("[[ask]]")
    await until(lambda: desk.questions)
    await desk.harness.answer(desk.session, "r-1", "deny", "use make instead")
    response = json.loads((await sending).reply)["response"]["response"]
    assert response == {"behavior": "deny", "message": "use make instead"}


async def test_a_question_is_answered_once_and_with_an_offered_choice(desk: Desk) -> None:
    sending = desk.sending("[[ask]]")
    await until(lambda: desk.questions)
    with pytest.raises(InvalidInput):
        await desk.harness.answer(desk.session, "r-1", "whatever")
    with pytest.raises(NotFound):
        await desk.harness.answer(desk.session, "r-7", "allow")
    await desk.harness.answer(desk.session, "r-1", "allow")
    with pytest.raises(NotFound):
        await desk.harness.answer(desk.session, "r-1", "allow")
    assert (await sending).ok


async def test_questions_come_one_after_the_other(desk: Desk) -> None:
    sending = desk.sending("[[ask-twice]]")
    for number in ("r-1", "r-2"):
        await until(partial(desk.is_asked, number))
        await desk.harness.answer(desk.session, number, "allow")
    assert (await sending).ok


async def test_all_parts_of_a_choice_are_answered_together(desk: Desk) -> None:
    sending = desk.sending("[[choose]]")
    await until(lambda: len(desk.questions) == 2)
    first, second = desk.questions
    assert ("2", "B") in first.choices
    await desk.harness.answer(desk.session, first.id, "2")
    assert desk.questions == (second,)
    await desk.harness.answer(desk.session, second.id, "1,3")
    response = json.loads((await sending).reply)["response"]["response"]
    assert response["updatedInput"]["answers"] == {"Which?": "B", "What else?": "X, Z"}


async def test_a_choice_may_be_answered_in_own_words_or_not_at_all(desk: Desk) -> None:
    sending = desk.sending("[[choose]]")
    await until(lambda: len(desk.questions) == 2)
    first, second = desk.questions
    await desk.harness.answer(desk.session, first.id, "other", "neither of them")
    await desk.harness.answer(desk.session, second.id, "deny")
    response = json.loads((await sending).reply)["response"]["response"]
    assert response["behavior"] == "deny"
    assert desk.questions == ()


async def test_a_withdrawn_question_disappears(desk: Desk) -> None:
    sending = desk.sending("[[withdraw]]")
    await until(lambda: len(desk.asked) == 2)
    assert desk.questions == ()
    await desk.harness.interrupt(desk.session)
    await sending


async def test_an_interrupted_question_disappears(desk: Desk) -> None:
    sending = desk.sending("[[ask]]")
    await until(lambda: desk.questions)
    await desk.harness.interrupt(desk.session)
    await sending
    assert desk.questions == ()


async def test_a_question_of_work_in_the_background_outlives_the_turn(desk: Desk) -> None:
    assert (await desk.send("[[ask-later]]")).ok
    await until(partial(desk.is_asked, "r-later"))
    status = await desk.harness.ensure_session(desk.session)
    assert status.state is SessionState.NEEDS_USER
    await desk.harness.answer(desk.session, "r-later", "allow")
    await until((desk.home / "later.json").exists)
    assert desk.questions == ()


async def test_what_the_agent_asks_of_us_and_we_cannot_do_is_refused(desk: Desk) -> None:
    reply = json.loads((await desk.send("[[odd-request]]")).reply)
    assert reply["response"]["subtype"] == "error"


async def test_a_reset_session_begins_a_new_history(desk: Desk) -> None:
    first = await desk.send("one")
    old = desk.transcript
    desk.session = await desk.harness.reset_session(desk.session)
    assert desk.session.generation == 1
    second = await desk.send("two")
    assert second.backend_id != first.backend_id
    assert "--session-id" in desk.starts[1]["arguments"]
    assert old.exists()
