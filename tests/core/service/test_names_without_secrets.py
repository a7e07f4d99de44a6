"""What stands beside a text is stored as well: no credential gets in there, and only text does."""

from __future__ import annotations

from pathlib import Path

import pytest

from isola_core.errors import InvalidInput, NotFound, SecretRefused
from isola_core.model import Target
from isola_core.projects import NewProject, ProjectChanges
from tests.core.world import BILLING, SEARCH, World

CANARY = "sk-ant-api03-" + "AAAAabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
NO_TEXT = "d-\udcff"


@pytest.mark.parametrize("field", ["event_id", "platform", "platform_id"])
async def test_no_credential_comes_in_as_an_id(world: World, field: str) -> None:
    for unstored in (False, True):
        with pytest.raises(SecretRefused) as refused:
            await world.say("hello", targets=(BILLING,), unstored=unstored, **{field: CANARY})
        assert refused.value.details["field"] == field
    assert await world.rows("SELECT * FROM messages") == []


async def test_no_credential_comes_in_as_a_conversation(world: World) -> None:
    with pytest.raises(SecretRefused):
        await world.say("hello", CANARY, targets=(BILLING,))
    with pytest.raises(SecretRefused):
        await world.service.save_draft(CANARY, "hello")
    assert CANARY.encode() not in _stored(world)


async def test_no_credential_comes_in_as_a_lane(world: World) -> None:
    lane = Target("billing", CANARY)
    with pytest.raises(SecretRefused):
        await world.say("hello", targets=(lane,))
    decision = await world.say("hello", targets=(SEARCH,))
    with pytest.raises(SecretRefused):
        await world.service.correct(decision.id, lane)
    assert CANARY.encode() not in _stored(world)


async def test_no_credential_comes_in_as_a_folder(world: World, tmp_path: Path) -> None:
    folder = tmp_path / CANARY
    folder.mkdir()
    with pytest.raises(SecretRefused):
        await world.projects.add(NewProject("New", path=folder))
    with pytest.raises(SecretRefused):
        await world.projects.edit("billing", ProjectChanges(path=str(folder)))
    assert CANARY.encode() not in _stored(world)


async def test_what_is_no_text_is_refused_and_is_no_fault(world: World, tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        await world.service.decision(NO_TEXT)
    with pytest.raises(InvalidInput, match="no text"):
        await world.say("hello", targets=(BILLING,), event_id=NO_TEXT)
    with pytest.raises((InvalidInput, NotFound)):
        await world.projects.find(NO_TEXT)
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    with pytest.raises(InvalidInput, match="no text"):
        await world.projects.edit("billing", ProjectChanges(path=str(folder)))
    assert (await world.say("\udcff hello", targets=(BILLING,))).message.text == "\ufffd hello"


def _stored(world: World) -> bytes:
    files = [world.store.path, world.store.path.with_name(world.store.path.name + "-wal")]
    return b"".join(each.read_bytes() for each in files if each.exists())
