"""The real Claude Code after deaths: of the agent, of us; what its transcript proves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil

from isola_core.ports import FailureKind, Outgoing, ReceiptState, SessionState, TurnEventKind
from tests.real_cli.claude_world import ClaudeWorld, until

ROOT = Path(__file__).parents[2]


def child_of_this_process() -> psutil.Process:
    (found,) = [
        each for each in psutil.Process().children() if "--permission-prompt-tool" in each.cmdline()
    ]
    return found


async def test_a_killed_agent_fails_the_turn_and_the_next_message_resumes(
    world: ClaudeWorld,
) -> None:
    first = await world.send("billing", "one")
    message = world.message("two [[sleep:30]]")
    world.events.clear()
    sending = asyncio.create_task(world.send("billing", message))
    await until(lambda: TurnEventKind.RECEIVED in [each.kind for each in world.events])
    child_of_this_process().send_signal(signal.SIGKILL)
    result = await sending
    assert (result.ok, result.failure) == (False, FailureKind.ERROR)
    assert "signal 9" in result.error
    assert (result.written, result.received) == (True, True)
    receipt = await world.harness.confirm(world.session("billing"), message)
    assert receipt.state is ReceiptState.RECEIVED

    third = await world.send("billing", "three")

    assert third.ok
    assert third.backend_id == first.backend_id
    assert [world.user_texts().count(each) for each in ("two [[sleep:30]]", "three")] == [1, 1]


async def test_an_agent_killed_before_it_kept_the_message_proves_nothing(
    world: ClaudeWorld,
) -> None:
    """The request is sent up to 0.1 s before the record is written."""
    await world.send("billing", "one")
    message = world.message("two [[sleep:30]]")
    sending = asyncio.create_task(world.send("billing", message))
    await until(lambda: bool(world.model.requests[1:]))
    child_of_this_process().send_signal(signal.SIGKILL)
    result = await sending
    receipt = await world.harness.confirm(world.session("billing"), message)
    kept = receipt.state is ReceiptState.RECEIVED
    assert kept or receipt.state is ReceiptState.ABSENT
    assert result.received == kept
    assert result.written or not kept
    assert (await world.send("billing", "three")).ok
    assert world.user_texts().count("two [[sleep:30]]") == int(kept)


async def test_an_agent_that_dies_idle_is_started_again(world: ClaudeWorld) -> None:
    await world.send("billing", "one")
    child = child_of_this_process()
    child.kill()
    await until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    assert (await world.send("billing", "two")).ok
    assert world.user_texts().count("two") == 1


async def test_identical_texts_are_told_apart(world: ClaudeWorld) -> None:
    sent, unsent = world.message("the same"), world.message("the same")
    await world.send("billing", sent)
    confirmed = await world.harness.confirm(world.session("billing"), sent)
    assert (confirmed.state, confirmed.reply) == (ReceiptState.ANSWERED, "REPLY: the same")
    absent = await world.harness.confirm(world.session("billing"), unsent)
    assert absent.state is ReceiptState.ABSENT


async def test_the_same_delivery_twice_is_one_turn(world: ClaudeWorld) -> None:
    message = world.message("only once")
    first = await world.send("billing", message)
    again = await world.send("billing", message)
    assert again.ok
    assert again.reply == first.reply
    assert len(world.model.requests) == 1
    assert world.transcript("billing").read_text().count(f'"uuid":"{first.turn_id}"') == 1


async def test_without_a_transcript_nothing_is_claimed(world: ClaudeWorld) -> None:
    message = world.message("one")
    await world.send("billing", message)
    await world.harness.close()
    world.transcript("billing").unlink()
    world.start()
    receipt = await world.harness.confirm(world.session("billing"), message)
    assert receipt.state is ReceiptState.UNKNOWN


DRIVER = """
import asyncio, os, sys
from pathlib import Path
from isola_core.clock import SystemClock
from isola_core.ports import Outgoing, SessionRef
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness

async def main():
    harness = ClaudeHarness(ClaudeSettings(), dict(os.environ), SystemClock())
    session = SessionRef("s-billing", "billing", "proj:billing", 0, cwd=Path(sys.argv[1]))
    await harness.dispatch(session, Outgoing("d-killed", "m-killed", sys.argv[2]))

asyncio.run(main())
"""


async def test_when_we_are_killed_the_agents_answer_is_found(
    world: ClaudeWorld, claude_env: dict[str, str]
) -> None:
    text = "survive us [[sleep:1.5]]"
    path = os.pathsep.join(map(str, (ROOT / "core", ROOT / "harnesses")))
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DRIVER, str(world.path("billing")), text),
        env={**claude_env, "PYTHONPATH": path},
    )
    try:
        await world.requests(1)
    finally:
        driver.kill()
        await driver.wait()
    status = await world.harness.ensure_session(world.session("billing"))
    assert status.state is SessionState.ASLEEP
    world.sessions["billing"] = status.session
    message = Outgoing("d-killed", "m-killed", text)
    receipt = await world.harness.confirm(world.session("billing"), message)
    assert receipt.state is ReceiptState.ANSWERED
    assert receipt.reply == "REPLY: survive us [[sleep:1.5]]"
    assert (await world.send("billing", "next")).ok
    assert world.user_texts().count(text) == 1


async def test_closing_leaves_no_process(world: ClaudeWorld) -> None:
    await world.send("billing", "one")
    child = child_of_this_process()
    await world.harness.close()
    assert not child.is_running()
