"""How messages reach sessions: order, one driver, interrupts, and what a dead process left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from isola_core.model import DecisionState, DeliveryState, RewindState
from isola_core.ports import SessionRef
from isola_core.service.settings import Settings
from isola_core.store import deliveries, sessions
from isola_core.store.transaction import Transaction
from tests.core.world import (
    INFRA,
    SEARCH,
    KnownProcesses,
    ManualClock,
    ScriptedHarness,
    World,
    open_world,
    until,
)


async def test_messages_of_a_session_arrive_once_and_in_order(world: World) -> None:
    for number in range(5):
        await world.say(f"@billing number {number}")
        await world.say(f"@search number {number}")
    await world.deliver()
    expected = [f"number {number}" for number in range(5)]
    assert world.harness.texts("billing") == expected
    assert world.harness.texts("search") == expected


async def test_only_one_delivery_of_a_session_is_live(world: World) -> None:
    world.harness.gate = asyncio.Event()
    await world.say("@billing one")
    await world.say("@billing two")
    running = asyncio.create_task(world.deliver())
    await world.harness.started.wait()
    states = await world.rows("SELECT state FROM deliveries ORDER BY seq")
    assert [each["state"] for each in states] == ["WRITTEN", "PENDING"]
    world.harness.gate.set()
    await running
    assert world.harness.texts("billing") == ["one", "two"]


async def test_a_correction_interrupts_the_running_turn_and_rewinds_it(world: World) -> None:
    world.harness.gate = asyncio.Event()
    decision = await world.say("@billing MARKER")
    running = asyncio.create_task(world.deliver())
    await world.harness.started.wait()
    corrected = await world.service.correct(decision.id, SEARCH)
    assert corrected.undone.interrupting
    assert corrected.undone.rewinding
    await until(lambda: world.harness.interrupted == ["proj:billing"])
    world.harness.gate.set()
    await running
    await world.deliver()
    old = await world.now(decision)
    assert old.delivery is DeliveryState.CANCELLED
    assert old.rewind is RewindState.DONE
    assert world.harness.texts("billing") == []
    assert world.harness.texts("search") == ["MARKER"]


async def test_a_stopped_turn_can_be_sent_again(world: World) -> None:
    world.harness.gate = asyncio.Event()
    decision = await world.say("@billing long work")
    running = asyncio.create_task(world.deliver())
    await world.harness.started.wait()
    await world.service.interrupt(decision.id)
    await running
    stopped = await world.now(decision)
    assert (stopped.state, stopped.delivery) == (DecisionState.TENTATIVE, DeliveryState.CANCELLED)
    world.harness.gate = None
    await world.service.resend(decision.id)
    await world.deliver()
    assert (await world.now(decision)).delivery is DeliveryState.ANSWERED


async def test_a_rewind_that_fails_is_tried_again_then_a_fresh_session_takes_over(
    world: World,
) -> None:
    kept = await world.say("@billing stays")
    wrong = await world.say("@billing MARKER")
    await world.deliver()
    world.harness.rewinds_fail = 99
    await world.service.correct(wrong.id, SEARCH)
    after = await world.say("@billing afterwards")
    await world.deliver()
    view = await world.now(wrong)
    assert view.rewind is RewindState.REPLACED
    assert "fresh session" in view.rewind_note
    assert world.harness.texts("billing", generation=1) == ["afterwards"]
    (record,) = [each for each in world.harness.records() if each["text"] == "afterwards"]
    assert "stays" in str(record["briefing"])
    assert "MARKER" not in str(record["briefing"])
    assert (await world.now(after)).delivery is DeliveryState.ANSWERED
    assert (await world.now(kept)).state is DecisionState.TENTATIVE
    later = await world.say("@billing once more")
    await world.deliver()
    (record,) = [each for each in world.harness.records() if each["text"] == "once more"]
    assert record["briefing"] == "", "a fresh session is briefed once"
    assert later.project == "billing"


async def test_recalled_memories_go_along_only_from_this_project(world: World) -> None:
    await world.say("@billing we decided invoices are immutable")
    await world.say("@search we decided invoices are indexed nightly")
    await world.deliver()
    await world.pass_window()
    await world.say("@billing change how invoices look")
    await world.deliver()
    (record,) = [
        each for each in world.harness.records() if each["text"] == "change how invoices look"
    ]
    assert record["memories"] == ["we decided invoices are immutable"]


async def test_a_second_process_leaves_a_driven_session_alone(tmp_path: Path) -> None:
    processes = [KnownProcesses(1), KnownProcesses(2)]
    harness = ScriptedHarness(tmp_path / "backend.jsonl")
    async with (
        open_world(tmp_path, pid=1, processes=processes[0], harness=harness) as one,
        open_world(tmp_path, pid=2, processes=processes[1], harness=harness) as two,
    ):
        harness.gate = asyncio.Event()
        await one.say("@billing one")
        first = asyncio.create_task(one.deliver())
        await harness.started.wait()
        await two.say("@billing two")
        await two.deliver()
        assert harness.texts("billing") == ["one"]
        harness.gate.set()
        await first
        await one.deliver()
        assert harness.texts("billing") == ["one", "two"]


class HoldingHarness(ScriptedHarness):
    """A backend with a child of its own for each session."""

    held = True

    def holds(self, session: SessionRef) -> bool:
        return self.held


async def test_a_session_whose_child_lives_here_stays_ours(tmp_path: Path) -> None:
    harness = HoldingHarness(tmp_path / "log")
    async with (
        open_world(tmp_path, pid=1, harness=harness) as one,
        open_world(tmp_path, pid=2, harness=ScriptedHarness(tmp_path / "log")) as two,
    ):
        await one.say("@billing first")
        await one.deliver()
        waiting = await two.say("@billing second")
        await two.deliver()
        assert (await two.now(waiting)).delivery is DeliveryState.PENDING
        await one.deliver()
        assert (await two.now(waiting)).delivery is DeliveryState.ANSWERED
        harness.held = False
        await one.say("@billing third")
        await one.deliver()
        last = await two.say("@billing fourth")
        await two.deliver()
        assert (await two.now(last)).delivery is DeliveryState.ANSWERED


async def _left_behind(
    tmp_path: Path, clock: ManualClock, harness: ScriptedHarness, state: DeliveryState
) -> str:
    """A process that died while a delivery was RUNNING or WRITTEN."""
    async with open_world(tmp_path, pid=1, clock=clock, harness=harness) as dead:
        decision = await dead.say("@billing MARKER")
        (row,) = await dead.rows("SELECT id, session FROM deliveries")

        def work(tx: Transaction) -> None:
            session = str(row["session"])
            fence = sessions.take_lease(tx, session, dead.processes.me())
            delivery = deliveries.delivery_by_id(tx, str(row["id"]))
            deliveries.move_delivery(tx, delivery, DeliveryState.RUNNING, fence=fence)
            if state is DeliveryState.WRITTEN:
                delivery = deliveries.delivery_by_id(tx, delivery.id)
                deliveries.move_delivery(tx, delivery, state, generation=0, sent_hash="h")

        await dead.store.write(work)
        return decision.id


async def test_what_was_never_written_is_sent_again_by_itself(tmp_path: Path) -> None:
    clock, harness = ManualClock(), ScriptedHarness(tmp_path / "log")
    decision = await _left_behind(tmp_path, clock, harness, DeliveryState.RUNNING)
    processes = KnownProcesses(2, dead={1})
    async with open_world(
        tmp_path, pid=2, clock=clock, harness=harness, processes=processes
    ) as world:
        await world.deliver()
        view = await world.now(decision)
        assert (view.delivery, view.attempt) == (DeliveryState.ANSWERED, 2)
        assert harness.texts("billing") == ["MARKER"]


async def test_what_may_have_arrived_stays_unknown_until_the_person_decides(
    tmp_path: Path,
) -> None:
    clock, harness = ManualClock(), ScriptedHarness(tmp_path / "log")
    harness.receipt_known = False
    decision = await _left_behind(tmp_path, clock, harness, DeliveryState.WRITTEN)
    processes = KnownProcesses(2, dead={1})
    async with open_world(
        tmp_path, pid=2, clock=clock, harness=harness, processes=processes
    ) as world:
        await world.deliver()
        await world.pass_window()
        view = await world.now(decision)
        assert (view.state, view.delivery) == (DecisionState.TENTATIVE, DeliveryState.UNKNOWN)
        assert harness.texts("billing") == []
        await world.service.resend(decision)
        await world.deliver()
        assert (await world.now(decision)).delivery is DeliveryState.ANSWERED
        assert harness.texts("billing") == ["MARKER"]


async def test_the_backends_own_record_settles_an_unknown_delivery(tmp_path: Path) -> None:
    clock, harness = ManualClock(), ScriptedHarness(tmp_path / "log")
    decision = await _left_behind(tmp_path, clock, harness, DeliveryState.WRITTEN)
    processes = KnownProcesses(2, dead={1})
    async with open_world(
        tmp_path, pid=2, clock=clock, harness=harness, processes=processes
    ) as world:
        await world.deliver()
        view = await world.now(decision)
        assert (view.delivery, view.attempt) == (DeliveryState.ANSWERED, 2), "proven absent"
        assert harness.texts("billing") == ["MARKER"]


async def test_an_answer_without_proof_of_receipt_is_unknown_until_somebody_settles_it(
    world: World,
) -> None:
    world.harness.proves_receipt = False
    world.harness.receipt_known = False
    decision = await world.say("@billing one")
    other = await world.say("@search two")
    await world.deliver()
    assert (await world.now(decision)).delivery is DeliveryState.UNKNOWN
    settled = await world.service.settle(decision.id)
    assert settled.delivery is DeliveryState.ANSWERED
    assert (await world.rows("SELECT excised FROM turns ORDER BY seq"))[0] == {"excised": 0}
    world.harness.receipt_known = True
    world.harness.proves_receipt = True
    await world.say("@search three")
    await world.deliver()
    proven = await world.now(other)
    assert (proven.delivery, proven.reply) == (DeliveryState.ANSWERED, "re: two")
    assert world.harness.texts("search") == ["two", "three"]


async def test_a_live_holder_keeps_its_lease_and_a_foreign_machine_is_given_time(
    tmp_path: Path,
) -> None:
    clock, harness = ManualClock(), ScriptedHarness(tmp_path / "log")
    decision = await _left_behind(tmp_path, clock, harness, DeliveryState.WRITTEN)
    async with open_world(tmp_path, pid=2, clock=clock, harness=harness) as world:
        await world.deliver()
        assert (await world.now(decision)).delivery is DeliveryState.WRITTEN
        world.processes.dead.add(1)
        await world.deliver()
        assert (await world.now(decision)).delivery is DeliveryState.ANSWERED


async def test_a_process_that_lost_its_lease_changes_nothing_any_more(tmp_path: Path) -> None:
    clock, harness = ManualClock(), ScriptedHarness(tmp_path / "log")
    harness.gate = asyncio.Event()
    harness.receipt_known = False
    async with (
        open_world(tmp_path, pid=1, clock=clock, harness=harness) as stalled,
        open_world(
            tmp_path,
            pid=2,
            clock=clock,
            harness=ScriptedHarness(tmp_path / "log"),
            processes=KnownProcesses(2, dead={1}),
        ) as other,
    ):
        other.harness.receipt_known = False
        decision = await stalled.say("@billing MARKER")
        running = asyncio.create_task(stalled.deliver())
        await harness.started.wait()
        await other.say("@billing next")
        await other.deliver()
        assert (await other.now(decision)).delivery is DeliveryState.UNKNOWN
        harness.gate.set()
        await running
        assert (await other.now(decision)).delivery is DeliveryState.UNKNOWN
        assert (await other.now(decision)).reply == ""


async def test_a_reset_session_has_nothing_left_to_rewind(world: World) -> None:
    decision = await world.say("@billing MARKER")
    await world.deliver()
    await world.store.write(
        lambda tx: tx.run("UPDATE sessions SET generation = generation + 1")  # a reset
    )
    await world.service.correct(decision.id, INFRA)
    await world.deliver()
    view = await world.now(decision)
    assert view.rewind is RewindState.DONE
    assert "reset" in view.rewind_note


async def test_a_window_of_no_length_commits_after_the_answer(tmp_path: Path) -> None:
    async with open_world(tmp_path, settings=Settings(isolation_ms=0)) as world:
        decision = await world.say("@billing at once")
        await world.recovery.tick()
        assert (await world.now(decision)).state is DecisionState.TENTATIVE
        await world.deliver()
        await world.recovery.tick()
        assert (await world.now(decision)).state is DecisionState.COMMITTED


async def test_an_urgent_message_stops_the_turn_and_goes_first(world: World) -> None:
    world.harness.gate = asyncio.Event()
    running = await world.say("@billing long work")
    await world.say("@billing waits")
    working = asyncio.create_task(world.deliver())
    await world.harness.started.wait()
    await world.say("@billing do this now", urgent=True)
    await until(lambda: world.harness.interrupted)
    world.harness.gate.set()
    await working
    await world.deliver()
    assert world.harness.texts("billing") == ["long work", "do this now", "waits"]
    assert (await world.now(running)).delivery is DeliveryState.CANCELLED
