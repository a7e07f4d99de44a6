"""Registering projects on the screen, the first one above all."""

from __future__ import annotations

from pathlib import Path

from isola_core.model import DecisionState
from tests.tui.stage import on_stage, opened


async def test_the_first_project_is_registered_on_the_screen(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    async with opened(tmp_path / "home", projects=()) as runtime, on_stage(runtime) as stage:
        assert "opens the form" in stage.screen_text
        assert "no project yet" in stage.target_title
        await stage.pilot.press("ctrl+n")
        await stage.type("shop")
        await stage.pilot.press("enter")
        await stage.type("orders and baskets")
        await stage.pilot.press("enter")
        await stage.type(str(folder))
        await stage.pilot.press("enter")
        await stage.until(lambda: "shop" in stage.home.board.projects)
        project = stage.home.board.projects["shop"]
        assert (project.description, project.path) == ("orders and baskets", str(folder))
        await stage.until(lambda: "shop is registered" in stage.home.notice.text)
        assert stage.home.entry.has_focus


async def test_a_refused_project_stays_in_the_form(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.pilot.press("ctrl+n")
        await stage.type("Billing")
        await stage.pilot.press("ctrl+j")
        await stage.until(lambda: "already a name" in stage.screen_text)
        assert stage.app.screen is not stage.home
        await stage.pilot.press("escape")
        await stage.until(lambda: stage.app.screen is stage.home)


async def test_a_message_before_the_first_project_waits_on_a_card(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", projects=()) as runtime, on_stage(runtime) as stage:
        view = await stage.send("write the first page")
        assert view.state is DecisionState.WAITING_CONFIRMATION
        assert "no project is registered yet" in stage.screen_text
        stage.clock.advance(1)
        await stage.pilot.press("ctrl+t", "p")
        await stage.until(lambda: stage.app.screen is not stage.home)
        await stage.type("pages")
        await stage.pilot.press("ctrl+j")
        await stage.until(lambda: stage.view(view.id).project == "pages")
        await stage.answered(view.id)
