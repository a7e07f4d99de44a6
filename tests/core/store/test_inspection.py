"""Looking without touching."""

from __future__ import annotations

from pathlib import Path

import pytest

from isola_core.errors import StoreError
from isola_core.projects import ProjectChanges
from isola_core.store import inspection
from tests.core.world import World


def test_looking_never_creates_a_database(tmp_path: Path) -> None:
    path = tmp_path / "isola.db"
    assert inspection.store_report(path).schema is None
    assert inspection.stuck_report(path, 0).unknown_deliveries == 0
    assert inspection.project_folders(path) == []
    assert list(tmp_path.iterdir()) == []


async def test_it_tells_schema_and_what_waits_for_somebody(world: World, tmp_path: Path) -> None:
    world.harness.fail = "down"
    await world.say("@billing hello")
    await world.deliver()
    world.harness.fail = None
    await world.say("@search hello")
    await world.deliver()
    await world.projects.edit("infra", ProjectChanges(path=str(tmp_path)))
    path = world.store.path
    report = inspection.store_report(path)
    assert (report.schema, report.newest, report.damage) == (1, 1, "")
    later = world.clock.now() + 1_000_000
    stuck = inspection.stuck_report(path, later)
    assert (stuck.failed_deliveries, stuck.overdue) == (1, 1)
    assert [each.id for each in inspection.project_folders(path)] == ["infra"]


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "isola.db"
    path.write_text("hello " * 1000)
    with pytest.raises(StoreError, match="cannot be read"):
        inspection.store_report(path)


def test_this_python_can_search() -> None:
    assert inspection.sqlite_report().fts5
