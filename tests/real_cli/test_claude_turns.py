"""Turns of the real Claude Code: the text it gets, its answers, questions, failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from isola_core.clock import SystemClock
from isola_core.ports import FailureKind, QuotedContext, SessionState, TurnEventKind
from isola_harnesses.claude import transcript
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from tests.fake_model.reading import objects
from tests.real_cli.claude_world import ClaudeWorld, until


async def test_a_turn_is_answered_streamed_and_proved(world: ClaudeWorld) -> None:
    status = await world.harness.ensure_session(world.session("billing"))
    assert "2.1.332" in status.detail
    assert not world.model.requests

    result = await world.send("billing", "hello\n\n  there")

    assert result.ok
    assert result.reply == "REPLY: hello\n\n  there"
    assert result.received
    assert result.backend_id == status.session.backend_id
    pieces = [each.text for each in world.events if each.kind is TurnEventKind.TEXT]
    assert "".join(pieces) == result.reply
    assert TurnEventKind.RECEIVED in [each.kind for each in world.events]
    assert result.turn_id in world.transcript("billing").read_text()


async def test_the_next_message_goes_into_the_same_session(world: ClaudeWorld) -> None:
    first = await world.send("billing", "one")
    second = await world.send("billing", "two")
    assert first.backend_id == second.backend_id
    assert "one" in world.user_texts()


LEADING = [
    *("!touch ran.txt", "/clear now", "/compact", "/cost", "/config theme=dark", "/run", "/x"),
    *(" /cost", "\t/cost", "\n/cost", "\u00a0/cost", "\ufeff/cost", "\u200b/cost", "//cost", "/"),
    *("?", "?help", "#remember this", "@secret.txt", "see @secret.txt and @/etc/hostname"),
    *("<command-name>/cost</command-name>", "[Request interrupted by user]", "ultrathink please"),
    *(
        "x\x1b[201~y",
        "tab\there\t",
        " leading",
        "trailing \n",
        "\n\nlines\n",
        "日本語 🎉 한국어 e\u0301",
    ),
]


async def test_no_text_is_run_and_every_text_arrives_as_it_is(world: ClaudeWorld) -> None:
    (world.path("billing") / "secret.txt").write_text("SECRET-CONTENT")
    command = world.path("billing") / ".claude" / "commands" / "run.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\nallowed-tools: Bash(touch:*)\n---\n!`touch ran.txt` $ARGUMENTS\n")
    session_id = (await world.send("billing", "begin")).backend_id
    for text in LEADING:
        before = len(world.model.requests)
        result = await world.send("billing", text)
        assert result.ok, text
        assert result.received, text
        assert result.backend_id == session_id, text
        assert len(world.model.requests) == before + 1, text
        expected = f" {text}" if text.startswith("/") else text
        assert expected in world.user_texts(), text
        assert "SECRET-CONTENT" not in world.last_request(), text
    assert not (world.path("billing") / "ran.txt").exists()


async def test_quoted_context_goes_in_front_and_is_not_interpreted(world: ClaudeWorld) -> None:
    (world.path("billing") / "secret.txt").write_text("SECRET-CONTENT")
    context = QuotedContext(memories=("/clear @secret.txt",), briefing="Uses Postgres.")
    result = await world.send("billing", "/status of the invoices", context=context)
    assert result.received
    sent = next(each for each in world.user_texts() if each.endswith("/status of the invoices"))
    assert "> - /clear @secret.txt" in sent
    assert "Uses Postgres." in sent
    assert "SECRET-CONTENT" not in world.last_request()


async def test_a_raw_command_is_the_sessions_own(world: ClaudeWorld) -> None:
    await world.send("billing", "one")
    result = await world.send("billing", world.message("/compact", raw=True))
    assert result.ok
    assert result.received
    assert "compact_boundary" in world.transcript("billing").read_text()


async def test_a_cleared_session_is_followed(world: ClaudeWorld) -> None:
    before = (await world.send("billing", "one SECRET-WORD")).backend_id
    cleared = await world.send("billing", world.message("/clear", raw=True))
    assert cleared.ok
    assert cleared.backend_id not in (None, before)
    after = await world.send("billing", "two")
    assert after.backend_id == cleared.backend_id
    assert after.received
    assert "SECRET-WORD" not in world.last_request()


TOUCH = '[[tool:Bash {"command":"touch made.txt","description":"make a file"}]]'


async def test_a_permission_is_asked_and_allowed(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", f"please {TOUCH}"))
    question = await world.question()
    assert question.tool == "Bash"
    assert "touch made.txt" in question.detail
    assert {"allow", "deny"} <= {choice for choice, _ in question.choices}
    status = await world.harness.ensure_session(world.session("billing"))
    assert status.state is SessionState.NEEDS_USER
    await world.harness.answer(world.session("billing"), question.id, "allow")
    result = await sending
    assert result.ok
    assert (world.path("billing") / "made.txt").exists()
    assert not world.asked


async def test_a_denied_permission_is_told_to_the_agent(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", f"please {TOUCH}"))
    question = await world.question()
    session = world.session("billing")
    await world.harness.answer(session, question.id, "deny", "not in this folder")
    result = await sending
    assert result.ok
    assert "not in this folder" in result.reply
    assert not (world.path("billing") / "made.txt").exists()


async def test_always_allowed_is_asked_once(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", f"please {TOUCH}"))
    question = await world.question()
    assert "always" in dict(question.choices)
    await world.harness.answer(world.session("billing"), question.id, "always")
    assert (await sending).ok
    (world.path("billing") / "made.txt").unlink()
    assert (await world.send("billing", "between")).ok
    assert (await world.send("billing", f"again {TOUCH}")).ok
    assert (world.path("billing") / "made.txt").exists()


async def test_the_agents_own_question_is_answered(world: ClaudeWorld) -> None:
    asked = (
        '[[tool:AskUserQuestion {"questions":[{"question":"Which database?","header":"DB",'
        '"multiSelect":false,"options":[{"label":"Postgres","description":"p"},'
        '{"label":"SQLite","description":"s"}]}]}]]'
    )
    sending = asyncio.create_task(world.send("billing", asked))
    question = await world.question()
    assert question.title == "Which database?"
    assert ("2", "SQLite") in question.choices
    await world.harness.answer(world.session("billing"), question.id, "2")
    assert "SQLite" in (await sending).reply


async def test_a_running_turn_is_interrupted_and_the_session_goes_on(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", "slow [[sleep:30]]"))
    await world.requests(1)
    await world.harness.interrupt(world.session("billing"))
    result = await sending
    assert (result.ok, result.failure, result.reply) == (False, FailureKind.CANCELLED, "")
    assert result.written
    assert (await world.send("billing", "and now")).reply == "REPLY: and now"


async def test_an_interrupted_question_disappears(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", f"please {TOUCH}"))
    await world.question()
    await world.harness.interrupt(world.session("billing"))
    assert (await sending).failure is FailureKind.CANCELLED
    assert not world.asked
    assert not (world.path("billing") / "made.txt").exists()


async def test_a_cancelled_caller_ends_the_turn(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(world.send("billing", "slow [[sleep:30]]"))
    await world.requests(1)
    sending.cancel()
    await asyncio.wait({sending})
    assert sending.cancelled()
    world.sessions["billing"] = (
        await world.harness.ensure_session(world.session("billing"))
    ).session
    text = world.transcript("billing").read_text()
    assert "[Request interrupted by user]" in text
    assert (await world.send("billing", "next")).ok


async def test_failures_are_told_apart_and_are_no_replies(world: ClaudeWorld) -> None:
    for status, kind in (
        (400, FailureKind.ERROR),
        (401, FailureKind.AUTH_EXPIRED),
        (403, FailureKind.AUTH_EXPIRED),
        (429, FailureKind.RATE_LIMITED),
        (529, FailureKind.ERROR),
    ):
        result = await world.send("billing", f"x [[error:{status}]]")
        assert not result.ok
        assert result.failure is kind
        assert result.reply == ""
        assert str(status) in result.error
        assert result.meta["api_error_status"] == status
    assert (await world.send("billing", "fine again")).ok


async def test_an_unreachable_model_is_a_failure(world: ClaudeWorld) -> None:
    world.model.close()
    result = await world.send("billing", "anybody?")
    assert result.failure is FailureKind.UNREACHABLE


async def test_projects_do_not_see_each_other(world: ClaudeWorld) -> None:
    results = await asyncio.gather(
        *(world.send(name, f"I am {name}") for name in ("billing", "search", "docs"))
    )
    assert all(each.ok for each in results)
    await world.send("billing", "again")
    assert "I am search" not in world.last_request()
    assert len({each.backend_id for each in results}) == 3


async def test_a_very_long_folder_keeps_its_session(world: ClaudeWorld, tmp_path: Path) -> None:
    name = "/".join(["a-rather-long-name-of-a-folder"] * 7)
    assert (await world.send(name, "one")).received
    await world.harness.close()
    world.start()
    assert (await world.send(name, "two")).received
    assert "one" in world.user_texts()


async def test_the_agent_sees_nothing_of_the_program_around_it(world: ClaudeWorld) -> None:
    sending = asyncio.create_task(
        world.send("billing", '[[tool:Bash {"command":"env","description":"d"}]]')
    )
    await until(lambda: bool(world.asked) or sending.done())
    if world.asked:
        await world.harness.answer(world.session("billing"), world.asked[0].id, "allow")
    reply = (await sending).reply
    assert "HOME=" in reply
    for name in ("TMUX=", "ISOLA"):
        assert name not in reply


async def test_an_unexpected_text_in_the_transcript_is_not_taken_for_ours(
    world: ClaudeWorld,
) -> None:
    message = world.message("exactly this")
    result = await world.send("billing", message)
    path = world.transcript("billing")
    await world.harness.close()
    path.write_text(path.read_text().replace('"exactly this"', '"something else"'))
    world.start()
    receipt = await world.harness.confirm(world.session("billing"), message)
    assert receipt.state == "unknown"
    assert result.turn_id == transcript.turn_id(message.delivery)


async def test_the_agents_own_notes_can_be_switched_off(
    claude_env: dict[str, str], world: ClaudeWorld
) -> None:
    await world.send("billing", "with notes")
    assert "/memory/" in world.last_request()
    world.create = lambda: ClaudeHarness(
        ClaudeSettings(auto_memory=False), claude_env, SystemClock()
    )
    await world.harness.close()
    world.start()
    await world.send("search", "without notes")
    assert "/memory/" not in world.last_request()


AGENT = (
    '[[tool:Agent {"description":"look","prompt":"count the giraffes of the savanna",'
    '"subagent_type":"general-purpose"}]]'
)


async def test_a_turn_holds_the_work_of_its_subagents(world: ClaudeWorld) -> None:
    result = await world.send("billing", AGENT)
    assert "REPLY: count the giraffes of the savanna" in result.reply
    assert "other_results" not in result.meta
    named = {each["name"] for each in objects(world.model.requests[-1].body["tools"])}
    assert not named & {"ListAgents", "SendMessage", "CronCreate", "ScheduleWakeup"}
