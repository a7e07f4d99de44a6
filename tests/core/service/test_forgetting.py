"""What a session was told of a message besides the message itself is forgotten with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from isola_core.errors import Conflict, StoreError
from isola_core.model import DecisionState, DeliveryState, RewindState, Target
from isola_core.projects import ProjectChanges
from isola_core.service.delegated import Corrected
from tests.core.world import BILLING, SEARCH, ScriptedHarness, World, open_world, until


class ResettingHarness(ScriptedHarness):
    """A backend that can forget a whole session only."""

    rewind = None  # type: ignore[assignment]


class RebuildingHarness(ScriptedHarness):
    """A backend whose sessions are the store's history."""

    rebuilds_history = True


@pytest.fixture
async def resetting(tmp_path: Path) -> AsyncIterator[World]:
    harness = ResettingHarness(tmp_path / "backend.jsonl")
    async with open_world(tmp_path, harness=harness) as world:
        yield world


async def current(world: World, project: str, lane: str = "") -> str:
    """Everything that the session of a project was told and still holds."""
    (session,) = await world.rows(
        "SELECT generation FROM sessions WHERE project = ? AND lane = ?", project, lane
    )
    key = f"proj:{project}:{lane}" if lane else f"proj:{project}"
    records = world.harness.records()
    held = [
        each
        for each in records
        if each["session"] == key and each["generation"] == session["generation"]
    ]
    return str(held)


async def test_a_waiting_briefing_forgets_what_is_taken_back(resetting: World) -> None:
    world = resetting
    await world.say("@billing STAYS")
    first = await world.say("@billing WRONGONE")
    second = await world.say("@billing WRONGTWO")
    await world.deliver()
    await world.service.correct(first.id, SEARCH)
    await world.deliver()
    await world.service.correct(second.id, SEARCH)
    await world.deliver()
    await world.say("@billing go on")
    await world.deliver()
    told = await current(world, "billing")
    assert "STAYS" in told
    assert "WRONG" not in told


async def test_a_session_that_was_briefed_with_it_is_replaced_too(resetting: World) -> None:
    world = resetting
    await world.say("@billing STAYS")
    first = await world.say("@billing WRONGONE")
    second = await world.say("@billing WRONGTWO")
    await world.deliver()
    await world.service.correct(first.id, SEARCH)
    await world.say("@billing go on")
    await world.deliver()
    assert "WRONGTWO" in await current(world, "billing")
    await world.service.correct(second.id, SEARCH)
    await world.say("@billing go further")
    await world.deliver()
    told = await current(world, "billing")
    assert "WRONG" not in told
    assert "STAYS" in told, "what went before the first replacement is known still"
    assert "go on" in told
    assert (await world.now(second)).rewind is RewindState.REPLACED


async def test_a_session_started_afresh_by_hand_is_not_briefed_with_the_old_one(
    resetting: World,
) -> None:
    world = resetting
    await world.say("@billing OLD")
    await world.deliver()
    await world.projects.edit("billing", ProjectChanges(path=str(_folder(world))))
    await world.say("@billing NEW")
    wrong = await world.say("@billing WRONG")
    await world.deliver()
    await world.service.correct(wrong.id, SEARCH)
    await world.say("@billing go on")
    await world.deliver()
    told = await current(world, "billing")
    assert "NEW" in told
    assert "OLD" not in told


async def test_turns_that_quoted_a_memory_of_it_are_forgotten(world: World) -> None:
    wrong = await world.say("@billing we decided that the WRONG quux stays")
    await world.deliver()
    await world.pass_window()
    await world.say("@billing what about the quux")
    await world.say("@billing what about the quux", targets=(Target("billing", "review"),))
    await world.deliver()
    assert "WRONG" in await current(world, "billing", "review")
    done = await world.service.correct(wrong.id, SEARCH)
    assert done.undone.rewinding
    await world.deliver()
    assert (await world.now(wrong)).rewind is RewindState.REPLACED
    for lane in ("", "review"):
        await world.say("the quux again", targets=(Target("billing", lane),))
        await world.deliver()
        told = await current(world, "billing", lane)
        assert "what about the quux" in told
        assert "WRONG" not in told


async def test_a_backend_without_a_memory_of_its_own_is_not_replaced_for_a_quote(
    tmp_path: Path,
) -> None:
    harness = RebuildingHarness(tmp_path / "backend.jsonl")
    async with open_world(tmp_path, harness=harness) as world:
        wrong = await world.say("@billing we decided that the WRONG quux stays")
        await world.deliver()
        await world.pass_window()
        await world.say("what about the quux", targets=(Target("billing", "review"),))
        await world.deliver()
        await world.service.correct(wrong.id, SEARCH)
        await world.deliver()
        assert (await world.now(wrong)).rewind is RewindState.DONE
        generations = await world.rows("SELECT generation FROM sessions")
        assert {row["generation"] for row in generations} == {0}


async def test_commit_now_ends_a_held_window_while_the_turn_runs(world: World) -> None:
    world.harness.gate = asyncio.Event()
    decision = await world.say("@billing one")
    await world.service.hold(decision.id)
    await world.dispatcher.pump()
    await until(world.harness.started.is_set)
    await world.service.commit_now(decision.id)
    world.harness.gate.set()
    await world.deliver()
    await world.recovery.tick()
    assert (await world.now(decision)).state is DecisionState.COMMITTED


async def test_a_withdrawn_message_is_not_said_to_be_confirmed(world: World) -> None:
    decision = await world.say("@billing one")
    assert (await world.service.confirm(decision.id, BILLING)).id == decision.id
    await world.service.withdraw(decision.id)
    with pytest.raises(Conflict, match="withdrawn"):
        await world.service.confirm(decision.id, BILLING)


async def test_undoing_a_committed_correction_corrects_it_back(world: World) -> None:
    wrong = await world.say("@billing one")
    done = await world.service.correct(wrong.id, SEARCH)
    await world.deliver()
    await world.pass_window()
    back = await world.service.undo(done.new.id)
    assert isinstance(back, Corrected)
    assert back.new.project == "billing"


async def test_a_text_that_a_session_still_holds_cannot_be_changed(world: World) -> None:
    wrong = await world.say("@billing the old words")
    await world.deliver()
    new = (await world.service.correct(wrong.id, SEARCH)).new
    with pytest.raises(Conflict, match="in a session already"):
        await world.service.edit_waiting(new.id, "other words")
    waiting = await world.say("@infra the old words")
    assert (await world.service.edit_waiting(waiting.id, "new words")).message.text == "new words"


async def test_messages_that_wait_while_a_project_moves_go_to_its_new_folder(world: World) -> None:
    folders: list[Path | None] = []
    dispatch = world.harness.dispatch

    async def noting(session, message):  # type: ignore[no-untyped-def]
        folders.append(session.cwd)
        return await dispatch(session, message)

    world.harness.dispatch = noting  # type: ignore[method-assign]
    world.harness.gate = asyncio.Event()
    await world.say("@billing one")
    await world.say("@billing two")
    await world.dispatcher.pump()
    await until(world.harness.started.is_set)
    folder = _folder(world)
    await world.projects.edit("billing", ProjectChanges(path=str(folder)))
    await world.say("@billing three")
    world.harness.gate.set()
    await world.deliver()
    assert folders == [None, folder, folder]
    (session,) = await world.rows("SELECT generation, cwd FROM sessions")
    assert session == {"generation": 1, "cwd": str(folder)}


async def test_messages_that_wait_while_a_project_changes_its_backend_go_to_the_new_one(
    world: World, tmp_path: Path
) -> None:
    other = ScriptedHarness(tmp_path / "other.jsonl")
    world.dispatcher._harness = lambda name: other if name == "other" else world.harness
    world.harness.gate = asyncio.Event()
    await world.say("@billing one")
    await world.say("@billing two")
    await world.dispatcher.pump()
    await until(world.harness.started.is_set)
    await world.projects.edit("billing", ProjectChanges(harness="other"))
    await world.say("@billing three")
    world.harness.gate.set()
    await world.deliver()
    assert world.harness.texts("billing") == ["one"]
    assert other.texts("billing") == ["two", "three"]


async def test_a_session_goes_on_after_the_store_refused_for_a_while(world: World) -> None:
    world.harness.gate = asyncio.Event()
    decision = await world.say("@billing one")
    await world.dispatcher.pump()
    await until(world.harness.started.is_set)
    write = world.store.write

    async def full(_: object) -> NoReturn:
        raise StoreError("the disk is full")

    world.store.write = full  # type: ignore[method-assign,assignment]
    world.harness.gate.set()
    await until(lambda: not world.dispatcher._running)
    await asyncio.gather(*world.dispatcher._drivers.values(), return_exceptions=True)
    world.store.write = write  # type: ignore[method-assign]
    await world.say("@billing two")
    await world.deliver()
    assert (await world.now(decision)).delivery is DeliveryState.ANSWERED, "the record proves it"
    assert world.harness.texts("billing") == ["one", "two"]


def _folder(world: World) -> Path:
    folder = world.store.path.parent.parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    return folder
