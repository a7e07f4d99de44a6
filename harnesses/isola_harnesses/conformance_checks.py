"""The promises of the harness contract, one function each; see `isola_harnesses.conformance`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from isola_core.errors import NotFound
from isola_core.ports import (
    Asks,
    Confirms,
    FailureKind,
    Interrupts,
    Outgoing,
    QuotedContext,
    ReceiptState,
    Rewinds,
    SessionRef,
    SessionState,
    Streams,
    TurnEvent,
    TurnEventKind,
    TurnRef,
    TurnResult,
)
from isola_core.text import normalise_message
from isola_harnesses.conformance import Check, Host, Skipped

_LIMIT_S: Final = 10.0
"""How long a turn may take to start, and to end after it was stopped."""

_UNUSABLE: Final = frozenset({SessionState.FAILED, SessionState.AUTH_EXPIRED, SessionState.EXITED})

TEXTS: Final = (
    "plain words",
    "!echo not a command",
    "/help is not a command",
    "?",
    "--version",
    "-",
    "@file",
    "a\tb\t\tc",
    "first\nsecond\n\n  third  \n",
    "  spaces before and behind  ",
    "$HOME `id` $(id) ; & | < > ' \" \\ % {prompt} {session} {}",
    "请把发票迁移回滚，保留审计记录",
    "👩‍👩‍👧 ✊🏽 é 한국어 ﷽ 𝔘",
    "[/bold] [link=x]y[/] {{ }}",
    "词 and word 🙂 " * 4000,
)
"""Texts that programs mangle; the last has more than 64 KB."""


def _need(kept: bool, what: str) -> None:
    if not kept:
        raise AssertionError(what)


async def _until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fails with `what` when it does not come."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _LIMIT_S
    while not true():
        _need(loop.time() < end, what)
        await asyncio.sleep(0.005)


def _need_good(result: TurnResult) -> None:
    _need(result.ok, f"a usual message fails: {result.error}")
    _need(bool(result.reply.strip()), "a good turn has no reply")
    _need(not result.error and result.failure is None, "a good turn has an error")


def _need_bad(result: TurnResult) -> None:
    _need(not result.ok, "the turn counts as good")
    _need(result.reply == "", "a failed turn has a reply")
    _need(bool(result.error.strip()), "a failed turn does not say why")


async def ensuring_twice_changes_nothing(host: Host) -> None:
    """`ensure_session` may be called again; it sends nothing and keeps the session's identity."""
    session = host.session("alpha")
    before = len(host.subject.seen()) if host.subject.seen else 0
    first = await host.harness.ensure_session(session)
    second = await host.harness.ensure_session(first.session)
    for status in (first, second):
        _need(status.state not in _UNUSABLE, f"the session is {status.state}: {status.detail}")
        same = (status.session.id, status.session.key, status.session.generation)
        _need(same == (session.id, session.key, session.generation), "the identity changed")
    _need(first.session == second.session, "the second call gives another session")
    if host.subject.seen:
        _need(len(host.subject.seen()) == before, "something was sent")


async def a_message_is_answered(host: Host) -> None:
    """A good turn has a reply without control characters and no error; and so has the next one."""
    session = (await host.harness.ensure_session(host.session("alpha"))).session
    for text in ("first message", "second message"):
        session, result = await host.send(session, text)
        _need_good(result)
        _need(normalise_message(result.reply) == result.reply, "the reply has control characters")


async def a_text_arrives_as_it_is(host: Host) -> None:
    """Every text reaches the backend byte for byte, also behind quoted context."""
    host.seen()
    context = QuotedContext(("the deploy is on friday",), "a briefing")
    session = (await host.harness.ensure_session(host.session("alpha"))).session
    for text in TEXTS:
        for given in (None, context):
            before = len(host.seen())
            session, result = await host.send(session, text, given)
            shown = repr(text[:60])
            _need(len(host.seen()) == before + 1, f"not sent exactly once: {shown}")
            _need(text in host.seen()[-1], f"another text arrived: {shown}")
            _need(result.ok, f"{shown} fails: {result.error}")


async def sessions_do_not_see_each_other(host: Host) -> None:
    """What was said in one project's session is in no other's."""
    alpha = (await host.harness.ensure_session(host.session("alpha"))).session
    beta = (await host.harness.ensure_session(host.session("beta"))).session
    alpha, _ = await host.send(alpha, "the zebrafinch marker is quiet")
    beta, result = await host.send(beta, "where is the marker?")
    _need_good(result)
    _need("zebrafinch" not in result.reply, "a reply holds another session's text")
    if host.subject.seen:
        _need("zebrafinch" not in host.seen()[-1], "the backend saw another session's text")
    alpha, again = await host.send(alpha, "where is the marker?")
    _need_good(again)


async def sessions_may_work_at_the_same_time(host: Host) -> None:
    """Turns of different sessions run side by side and each gets its own reply."""
    names = ("alpha", "beta", "gamma")
    sessions = [(await host.harness.ensure_session(host.session(name))).session for name in names]
    sent = [host.send(each, f"marker {each.project}") for each in sessions]
    for session, result in await asyncio.gather(*sent):
        _need_good(result)
        others = [name for name in names if name != session.project]
        _need(not any(name in result.reply for name in others), "replies are mixed up")


async def a_reset_starts_an_empty_history(host: Host) -> None:
    """After `reset_session` the generation is new and nothing said before is known."""
    session = (await host.harness.ensure_session(host.session("alpha"))).session
    session, _ = await host.send(session, "the zebrafinch marker is quiet")
    fresh = await host.harness.reset_session(session)
    _need(fresh.generation > session.generation, "the generation did not grow")
    _need((fresh.id, fresh.key) == (session.id, session.key), "another session came back")
    fresh = (await host.harness.ensure_session(fresh)).session
    fresh, result = await host.send(fresh, "where is the marker?")
    _need_good(result)
    _need("zebrafinch" not in result.reply, "a reply holds what was reset")
    if host.subject.seen:
        _need("zebrafinch" not in host.seen()[-1], "the backend saw what was reset")


async def a_failed_turn_is_no_reply(host: Host) -> None:
    """A failure has an error text, no reply, and the session goes on."""
    if host.subject.failing is None:
        raise Skipped("the subject names no failing message")
    session = (await host.harness.ensure_session(host.session("alpha"))).session
    session, before = await host.send(session, "first message")
    session, failed = await host.send(session, host.subject.failing)
    session, after = await host.send(session, "second message")
    _need_good(before)
    _need_bad(failed)
    _need_good(after)
    if not failed.written and host.subject.seen:
        in_history = host.subject.failing in host.seen()[-1]
        _need(not in_history, "written is False and the text is in the session all the same")


async def a_cancelled_turn_ends(host: Host) -> None:
    """Cancelling the task that runs `dispatch` ends the turn soon, and the session goes on."""
    session, task, _ = await _slow_turn(host)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_LIMIT_S)
    _need(bool(done), "the turn does not end")
    if not task.cancelled() and task.exception() is None:
        _need_bad(task.result())
    session = (await host.harness.ensure_session(session)).session
    _, result = await host.send(session, "after it")
    _need_good(result)


async def an_interrupt_ends_the_turn(host: Host) -> None:
    """Interrupts: the running turn returns as CANCELLED without a reply; without one, no effect."""
    harness = host.harness
    if not isinstance(harness, Interrupts):
        raise Skipped("the harness cannot interrupt")
    session, task, _ = await _slow_turn(host)
    await harness.interrupt(session)
    done, _ = await asyncio.wait({task}, timeout=_LIMIT_S)
    _need(bool(done), "the turn does not end")
    _need_bad(task.result())
    _need(task.result().failure is FailureKind.CANCELLED, "the failure is not CANCELLED")
    await harness.interrupt(session)
    session = (await harness.ensure_session(session)).session
    _, result = await host.send(session, "after it")
    _need_good(result)


async def fragments_add_up_to_the_reply(host: Host) -> None:
    """Streams: the TEXT events are the reply, in order and complete."""
    harness = host.harness
    if not isinstance(harness, Streams):
        raise Skipped("the harness does not stream")
    session = (await harness.ensure_session(host.session("alpha"))).session
    events: list[TurnEvent] = []
    message = host.message("a message long enough for several fragments " * 5)
    result = await harness.dispatch_streaming(session, message, events.append)
    _need_good(result)
    told = "".join(each.text for each in events if each.kind is TurnEventKind.TEXT)
    _need(told == result.reply, "the fragments are not the reply")


async def a_rewound_turn_is_forgotten(host: Host) -> None:
    """Rewinds: the turn is gone; what came later stays, unless a fresh session took over."""
    harness = host.harness
    if not isinstance(harness, Rewinds):
        raise Skipped("the harness cannot rewind")
    session = (await harness.ensure_session(host.session("alpha"))).session
    session, _ = await host.send(session, "one ostrich")
    message = host.message("two zebrafinch")
    wrong = await harness.dispatch(session, message)
    session = host.keep(session, message, wrong)
    session, _ = await host.send(session, "three pelican")
    host.history.excise(message.delivery)
    rewound = await harness.rewind(
        session, TurnRef(message.delivery, wrong.turn_id, message.text, message.context)
    )
    _need((rewound.session.id, rewound.session.key) == (session.id, session.key), "another session")
    if rewound.replaced:
        _need(bool(rewound.note.strip()), "a fresh session took over and nobody is told why")
    session = (await harness.ensure_session(rewound.session)).session
    session, result = await host.send(session, "where are the birds?")
    _need_good(result)
    _need("zebrafinch" not in result.reply, "a reply holds the forgotten turn")
    if host.subject.seen:
        _need("zebrafinch" not in host.seen()[-1], "the backend saw the forgotten turn")


async def a_receipt_is_never_invented(host: Host) -> None:
    """Confirms: a message that was never sent is not received; an answered one is not absent."""
    harness = host.harness
    if not isinstance(harness, Confirms):
        raise Skipped("the harness cannot confirm")
    session = (await harness.ensure_session(host.session("alpha"))).session
    message = host.message("a message that is sent")
    result = await harness.dispatch(session, message)
    session = host.keep(session, message, result)
    known = await harness.confirm(session, message)
    _need(known.state is not ReceiptState.ABSENT, "an answered message counts as absent")
    if known.state is ReceiptState.ANSWERED:
        _need(known.reply == result.reply, "the receipt has another reply")
    never = await harness.confirm(session, host.message("a message that is never sent"))
    invented = never.state in (ReceiptState.RECEIVED, ReceiptState.ANSWERED)
    _need(not invented, "a message that was never sent counts as received")


async def an_unknown_question_is_refused(host: Host) -> None:
    """Asks: an answer to a question that is not open raises `NotFound`."""
    harness = host.harness
    if not isinstance(harness, Asks):
        raise Skipped("the harness never asks")
    harness.set_listener(lambda session, questions: None)
    session = (await harness.ensure_session(host.session("alpha"))).session
    try:
        await harness.answer(session, "no-such-question", "allow")
    except NotFound:
        return
    _need(False, "an answer to no question is taken")


async def closing_twice_is_harmless(host: Host) -> None:
    """`close` lets go of everything, also of a running turn, and may be called again."""
    if host.subject.slow is None:
        session = (await host.harness.ensure_session(host.session("alpha"))).session
        await host.send(session, "first message")
        await host.harness.close()
    else:
        _, task, _ = await _slow_turn(host)
        await host.harness.close()
        done, _ = await asyncio.wait({task}, timeout=_LIMIT_S)
        _need(bool(done), "a turn outlives its harness")
        if not task.cancelled() and task.exception() is None:
            _need_bad(task.result())
    await host.harness.close()


async def _slow_turn(
    host: Host,
) -> tuple[SessionRef, asyncio.Task[TurnResult], Outgoing]:
    """A turn that is running: the backend has it, as far as that can be known."""
    if host.subject.slow is None:
        raise Skipped("the subject names no slow message")
    session = (await host.harness.ensure_session(host.session("alpha"))).session
    session, _ = await host.send(session, "first message")
    before = len(host.subject.seen()) if host.subject.seen else 0
    message = host.message(host.subject.slow)
    task = asyncio.create_task(host.harness.dispatch(session, message))
    seen = host.subject.seen
    if seen is None:
        await asyncio.sleep(0.2)
    else:
        await _until(lambda: task.done() or len(seen()) > before, "the turn does not start")
    _need(not task.done(), "the slow message is not slow")
    return session, task, message


ALL: Final[tuple[Check, ...]] = (
    ensuring_twice_changes_nothing,
    a_message_is_answered,
    a_text_arrives_as_it_is,
    sessions_do_not_see_each_other,
    sessions_may_work_at_the_same_time,
    a_reset_starts_an_empty_history,
    a_failed_turn_is_no_reply,
    a_cancelled_turn_ends,
    an_interrupt_ends_the_turn,
    fragments_add_up_to_the_reply,
    a_rewound_turn_is_forgotten,
    a_receipt_is_never_invented,
    an_unknown_question_is_refused,
    closing_twice_is_harmless,
)
