"""Registration: names that cannot be confused, folders that can be projects, nothing half done."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.errors import Conflict, InvalidInput, NotFound, SecretRefused
from isola_core.projects import ID_PATTERN, NewProject, ProjectChanges, slug
from tests.core.world import World


async def test_a_project_gets_an_id_a_scope_and_an_index(world: World) -> None:
    project = await world.projects.add(NewProject("My App", "does things", ("the app",)))
    assert project.id == "my_app"
    assert project.scope == f"proj.{world.core.owner.label}.my_app"
    assert await world.remembered("the APP", "anything") == []
    assert (await world.say("@my_app hello")).project == "my_app"


@pytest.mark.parametrize(
    "name", ["billing", "BILLING ", "Bill-ing", "bill ing", unicodedata.normalize("NFD", "Billing")]
)
async def test_spellings_of_a_name_are_one_project(world: World, name: str) -> None:
    with pytest.raises(Conflict, match="Billing"):
        await world.projects.add(NewProject(name))
    assert (await world.projects.find(name)).id == "billing"


async def test_an_alias_cannot_shadow_another_project(world: World) -> None:
    with pytest.raises(Conflict, match="search"):
        await world.projects.add(NewProject("Shop", aliases=("Search",)))
    with pytest.raises(Conflict):
        await world.projects.edit("infra", ProjectChanges(aliases=("bill_ing",)))
    assert len(await world.projects.all()) == 3
    assert await world.rows("SELECT * FROM aliases") == []


async def test_a_retired_project_keeps_its_name_and_can_come_back(world: World) -> None:
    await world.projects.retire("billing")
    with pytest.raises(Conflict, match="retired"):
        await world.projects.find("billing")
    with pytest.raises(Conflict, match="retired"):
        await world.projects.add(NewProject("Billing"))
    back = await world.projects.edit("billing", ProjectChanges(retired=False))
    assert not back.retired
    assert (await world.say("@billing hello")).project == "billing"


async def test_an_unknown_name_is_answered_with_the_close_ones(world: World) -> None:
    with pytest.raises(NotFound, match="billing") as unknown:
        await world.projects.find("biling")
    assert unknown.value.details["candidates"] == ["billing"]


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "x" * 121, "---"])
async def test_a_name_that_cannot_be_used_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidInput):
        await world.projects.add(NewProject(name))
    assert len(await world.projects.all(retired=True)) == 3


async def test_a_credential_in_a_description_is_refused(world: World) -> None:
    with pytest.raises(SecretRefused):
        await world.projects.add(NewProject("Shop", "key is AKIA" + "ABCDEFGHIJKLMNOP"))


async def test_only_a_folder_of_its_own_can_be_a_projects_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (Path("/"), Path("~"), Path("/tmp"), tmp_path / "missing"):
        with pytest.raises(InvalidInput):
            await world.projects.add(NewProject("Shop", path=path))
    real = tmp_path / "größe 项目"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    project = await world.projects.add(NewProject("Shop", path=tmp_path / "link"))
    assert project.path == str(real)
    with pytest.raises(Conflict, match="Shop"):
        await world.projects.add(NewProject("Other", path=real))
    await world.say("@shop hello")
    await world.deliver()
    (row,) = await world.rows("SELECT cwd FROM sessions")
    assert row["cwd"] == str(real)


async def test_a_moved_project_starts_a_fresh_history_in_its_new_folder(
    world: World, tmp_path: Path
) -> None:
    await world.say("@billing hello")
    await world.deliver()
    await world.projects.edit("billing", ProjectChanges(path=str(tmp_path)))
    await world.say("@billing again")
    await world.deliver()
    assert [each["generation"] for each in world.harness.records()] == [0, 1]


async def test_the_configuration_adds_and_updates_and_never_removes(world: World) -> None:
    before = world.store.transactions
    same = [NewProject("Billing", "invoices, refunds, the payment provider", id="billing")]
    await world.projects.sync(same)
    assert world.store.transactions == before, "nothing differs, nothing is written"
    await world.projects.sync([NewProject("Billing", "money", id="billing")])
    assert (await world.projects.find("billing")).description == "money"
    assert len(await world.projects.all()) == 3


async def test_ids_of_projects_that_look_alike_stay_apart(world: World) -> None:
    one = await world.projects.add(NewProject("Größe"))
    two = await world.projects.add(NewProject("Grosse"))
    three = await world.projects.add(NewProject("项目一"))
    four = await world.projects.add(NewProject("项目二"))
    ids = [one.id, two.id, three.id, four.id]
    assert len(set(ids)) == 4
    assert len({each.scope for each in (one, two, three, four)}) == 4


@given(st.text(min_size=1, max_size=200))
def test_every_name_makes_a_usable_id(name: str) -> None:
    assert ID_PATTERN.match(slug(name))
