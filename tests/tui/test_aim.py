"""The target: steady while typing, several at once, locked, raw, and what stands before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isola_core.model import Attribution, Candidate, DeliveryState, Stage, Target
from isola_tui.aim import steady
from tests.tui.stage import Running, on_stage, opened, say
from tests.tui.states import end_delivery, stop_dispatching


def judged(best: str, *shares: tuple[str, float]) -> Attribution:
    candidates = tuple(Candidate(project, share, "words") for project, share in shares)
    share = dict(shares).get(best, 0.0)
    target = Target(best) if best else None
    return Attribution(
        Stage.JUDGEMENT, share, "words", target, candidates=candidates, judge="local"
    )


SHOWN = judged("billing", ("billing", 0.6), ("search", 0.3))
EXPLICIT = Attribution(Stage.EXPLICIT, 1.0, "@", Target("search"), automatic=True)
NAMED = Attribution(Stage.JUDGEMENT, 0.96, "named", Target("search"), automatic=True, judge="names")


@pytest.mark.parametrize(
    ("shown", "now", "target"),
    [
        (SHOWN, judged("search", ("search", 0.7), ("billing", 0.61)), "billing"),
        (SHOWN, judged("search", ("search", 0.8), ("billing", 0.2)), "search"),
        (SHOWN, judged("", ("search", 0.62), ("billing", 0.61)), "billing"),
        (SHOWN, judged("", ("search", 0.4), ("billing", 0.4)), None),
        (SHOWN, judged("search", ("search", 0.5)), "search"),
        (SHOWN, EXPLICIT, "search"),
        (SHOWN, NAMED, "search"),
        (EXPLICIT, judged("billing", ("billing", 0.51), ("search", 0.49)), "billing"),
        (NAMED, judged("billing", ("billing", 0.51), ("search", 0.49)), "billing"),
        (None, SHOWN, "billing"),
    ],
)
def test_a_target_changes_only_for_a_clearly_better_one(
    shown: Attribution | None, now: Attribution, target: str | None
) -> None:
    found = steady(shown, now)
    assert found is not None
    assert (found.target.project if found.target else None) == target
    if found.target is not None and found.candidates:
        ranked = {each.project: each.confidence for each in found.candidates}
        assert found.confidence == ranked[found.target.project]


@asynccontextmanager
async def locked(home: Path) -> AsyncIterator[Running]:
    async with opened(home) as runtime, on_stage(runtime) as stage:
        await stage.type("the billing run")
        await stage.pilot.press("ctrl+l")
        yield stage


async def test_a_lock_takes_every_message_until_it_is_released(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        assert stage.target_title.startswith("▣ billing")
        assert stage.home.entry.has_class("-locked")
        for text in ("one", "the search index", "ok"):
            view = await stage.send(text)
            assert view.project == "billing"
            assert view.attribution.stage is Stage.CHOSEN
        await stage.pilot.press("escape")
        assert not stage.home.entry.has_class("-locked")
        assert (await stage.send("the search index")).project == "search"


async def test_the_same_key_releases_the_lock(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        await stage.pilot.press("ctrl+l")
        assert stage.target_title.startswith("→ billing")
        assert stage.home.composer.aim.locked is None


async def test_an_address_and_a_pick_stand_before_the_lock_for_one_message(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        view = await stage.send("@search look")
        assert (view.project, view.message.text) == ("search", "look")
        assert stage.home.composer.aim.locked == Target("billing")
        await stage.type("x")
        await stage.pilot.press("tab")
        picked = stage.home.composer.aim.target
        assert picked is not None
        assert picked.project != "billing"
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.newest.project == picked.project)
        assert stage.target_title.startswith("▣ billing")


async def test_a_locked_burst_with_an_address_goes_to_the_address(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        stage.home.entry.load_message("@search look")
        stage.home.entry.action_send()
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.project == "search"


async def test_nothing_is_locked_where_no_target_stands(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.pilot.press("ctrl+l")
        assert "no target to lock" in stage.home.notice.text
        assert stage.home.composer.aim.locked is None


async def test_the_lock_ends_with_the_program(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        await stage.home.composer.save()
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.until(lambda: stage.home.entry.message)
        assert stage.home.composer.aim.locked is None


async def test_all_addressed_targets_stand_in_the_line(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        stage.home.entry.load_message("@billing @search/tests @docs look")
        await stage.until(lambda: stage.target_title.startswith("→ billing + search/tests + docs"))


async def test_a_raw_text_goes_as_it_is_and_only_where_it_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("the billing run")
        await stage.pilot.press("alt+r")
        assert stage.target_title.startswith("⇒ ?")
        assert stage.home.entry.has_class("-raw")
        await stage.pilot.press("enter")
        await stage.until(lambda: "only where you say" in stage.home.notice.text)
        assert stage.home.entry.message == "the billing run"
        assert not stage.home.board.decisions
        stage.home.entry.load_message("@billing /compact")
        await stage.until(lambda: stage.target_title.startswith("⇒ billing"))
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.home.board.decisions)
        view = await stage.answered(stage.newest.id)
        assert (view.project, view.message.text) == ("billing", "/compact")
        assert not stage.home.composer.aim.raw
        stage.clock.advance(400)
        await runtime.recovery.tick()
        assert [state for _, state, _ in await runtime.service.writes_of(view.id)] != ["PENDING"]
        assert not await runtime.recall(runtime.service.projects[0], "compact", 5)


async def test_escape_leaves_raw_and_keeps_the_rest(tmp_path: Path) -> None:
    async with locked(tmp_path / "home") as stage:
        await stage.pilot.press("ctrl+g", "r")
        await stage.until(lambda: stage.home.composer.aim.raw)
        await stage.pilot.press("escape")
        assert not stage.home.composer.aim.raw
        assert stage.home.composer.aim.locked == Target("billing")


async def busy(stage: Running) -> None:
    """A turn runs in billing's session and one message waits there."""
    stop_dispatching(stage)
    first = await say(stage.runtime, "rebuild it", "billing")
    await say(stage.runtime, "then test it", "billing")
    await stage.until(lambda: first.id in stage.home.board.decisions)
    await end_delivery(stage, first, DeliveryState.RUNNING, "")
    await end_delivery(stage, first, DeliveryState.WRITTEN, "")


async def test_a_busy_session_is_told_before_enter(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await stage.type("the billing run")
        assert "queues behind" not in stage.target_title
        await busy(stage)
        await stage.until(lambda: "queues behind 2" in stage.target_title)
        assert stage.home.presentation.keys["urgent"] in stage.target_title


@pytest.mark.parametrize("keys", [("f10",), ("ctrl+g", "i")])
async def test_urgent_interrupts_and_goes_first_and_enter_queues(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    async with opened(tmp_path / "home") as runtime, on_stage(runtime) as stage:
        await busy(stage)
        queued = await stage.send("the billing run")
        await stage.type("stop, the billing run is wrong")
        await stage.pilot.press(*keys)
        await stage.until(lambda: stage.newest.id != queued.id)
        rows = await runtime.store.read(
            lambda tx: tx.all("SELECT decision, urgent, interrupt FROM deliveries ORDER BY seq")
        )
        assert [row["urgent"] for row in rows] == [0, 0, 0, 1]
        assert rows[0]["interrupt"]
        assert not rows[1]["interrupt"]
