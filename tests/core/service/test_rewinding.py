"""What a person is told of a rewind: what was done, why, and what it left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isola_core.model import RewindState
from isola_core.ports import Effects, Rewound, SessionRef, TurnRef
from tests.core.world import SEARCH, ScriptedHarness, World


async def test_the_note_lists_the_files_that_stay_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = ScriptedHarness.rewind

    async def rewind(self: ScriptedHarness, session: SessionRef, turn: TurnRef) -> Rewound:
        done = await forget(self, session, turn)
        return replace(done, note="It is gone.", kept_changes=("/src/a.py", "/src/b.py"))

    monkeypatch.setattr(ScriptedHarness, "rewind", rewind)
    wrong = await world.say("@billing MARKER")
    await world.deliver()
    await world.service.correct(wrong.id, SEARCH)
    await world.deliver()
    view = await world.now(wrong)
    assert (
        view.rewind_note == "It is gone. Files that it changed stay changed: /src/a.py, /src/b.py."
    )


async def test_a_fresh_session_says_why_it_took_over(world: World) -> None:
    wrong = await world.say("@billing MARKER")
    await world.deliver()
    world.harness.rewinds_fail = 99
    await world.service.correct(wrong.id, SEARCH)
    await world.deliver()
    view = await world.now(wrong)
    assert view.rewind is RewindState.REPLACED
    assert "a fresh session took over" in view.rewind_note
    assert "the record is locked" in view.rewind_note


async def test_a_fresh_session_lists_the_files_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def effects(self: ScriptedHarness, session: SessionRef, turn: TurnRef) -> Effects:
        assert turn.text == "MARKER"
        return Effects(("/src/a.py",), "Commands may have changed more.")

    monkeypatch.setattr(ScriptedHarness, "effects", effects, raising=False)
    wrong = await world.say("@billing MARKER")
    await world.deliver()
    world.harness.rewinds_fail = 99
    await world.service.correct(wrong.id, SEARCH)
    await world.deliver()
    told = (await world.now(wrong)).rewind_note
    assert "Files that it changed stay changed: /src/a.py. Commands may have changed more" in told
