"""The real Claude Code forgets one turn: nothing of it reaches the model again."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from isola_core.clock import SystemClock
from isola_core.ports import QuotedContext
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from tests.real_cli.claude_world import ClaudeWorld, until

FOREIGN = "zebra4711 rolls back the zebra4712 invoice and zebra4713 keeps the audit rows"


def pieces_of(text: str) -> list[str]:
    """Every run of two words."""
    words = text.split()
    return [" ".join(pair) for pair in pairwise(words)]


def files_with(text: bytes, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


async def test_the_next_request_holds_no_byte_of_the_turn(world: ClaudeWorld) -> None:
    await world.send("search", "first question about the index")
    foreign = world.message(FOREIGN)
    before = await world.send("search", foreign)
    await world.send("search", "third question about stemming")
    await world.send("search", "fourth question about ranking")
    original = world.transcript("search")
    bytes_before = original.read_bytes()

    replaced, note, kept = await world.rewind("search", foreign)

    assert not replaced
    assert kept == ()
    assert "taken out" in note
    assert world.session("search").backend_id != before.backend_id
    result = await world.send("search", "fifth question")
    assert result.ok
    assert result.received
    request = world.last_request()
    for piece in pieces_of(FOREIGN):
        assert piece not in request
    assert "zebra" not in request
    texts = world.user_texts()
    for stays in ("first question about the index", "REPLY: third question about stemming"):
        assert any(stays in each for each in texts)
    assert "fourth question about ranking" in texts
    assert original.read_bytes().startswith(bytes_before)
    assert FOREIGN not in world.transcript("search").read_text()


@pytest.mark.parametrize("place", ["first", "last", "only"])
async def test_a_turn_at_an_end_of_the_history_is_forgotten(world: ClaudeWorld, place: str) -> None:
    foreign = world.message(FOREIGN)
    if place == "last":
        await world.send("search", "an earlier question")
    await world.send("search", foreign)
    if place == "first":
        await world.send("search", "a later question")
    replaced, _, _ = await world.rewind("search", foreign)
    assert not replaced
    assert (await world.send("search", "next")).ok
    assert "zebra" not in world.last_request()
    if place != "only":
        assert any("question" in each for each in world.user_texts())


async def test_changed_files_are_listed_and_stay(world: ClaudeWorld) -> None:
    await world.send("search", "begin")
    path = world.path("search") / "zebra.txt"
    foreign = world.message(
        f'{FOREIGN} [[tool:Write {{"file_path":"{path}","content":"zebra stripes"}}]]'
    )
    sending = asyncio.create_task(world.send("search", foreign))
    question = await world.question()
    await world.harness.answer(world.session("search"), question.id, "allow")
    assert (await sending).ok
    await world.send("search", "later question")
    replaced, _, kept = await world.rewind("search", foreign)
    assert not replaced
    assert kept == (str(path),)
    assert path.read_text() == "zebra stripes"
    await world.send("search", "next")
    assert "zebra" not in world.last_request()


@pytest.mark.parametrize("background", [False, True])
async def test_the_work_of_subagents_is_forgotten_too(
    world: ClaudeWorld, claude_env: dict[str, str], background: bool
) -> None:
    await world.harness.close()
    settings = ClaudeSettings(background_tasks=background)
    world.create = lambda: ClaudeHarness(settings, claude_env, SystemClock())
    world.start()
    await world.send("search", "begin")
    foreign = world.message(
        f'{FOREIGN} [[tool:Agent {{"description":"zebra","prompt":"zebra4714 is looked for",'
        '"subagent_type":"general-purpose"}]]'
    )
    await world.send("search", foreign)
    if background:
        await until(lambda: "<task-notification>" in world.transcript("search").read_text())
        await until(lambda: '"last-prompt"' in world.transcript("search").read_text())
    await world.send("search", "later question")
    replaced, note, _ = await world.rewind("search", foreign)
    assert not replaced, note
    assert "subagents (1)" in note
    await world.send("search", "next")
    assert "zebra" not in world.last_request()
    assert "later question" in world.user_texts()


async def test_its_quoted_context_goes_with_it(world: ClaudeWorld) -> None:
    context = QuotedContext(memories=("the giraffe endpoint is slow",))
    foreign = world.message(FOREIGN, context=context)
    await world.send("search", "begin")
    await world.send("search", foreign)
    replaced, _, _ = await world.rewind("search", foreign)
    assert not replaced
    await world.send("search", "next")
    assert "giraffe" not in world.last_request()
    assert "zebra" not in world.last_request()


async def test_a_running_turn_is_ended_and_forgotten(world: ClaudeWorld) -> None:
    await world.send("search", "begin")
    foreign = world.message(f"{FOREIGN} [[sleep:30]]")
    sending = asyncio.create_task(world.send("search", foreign))
    await world.requests(2)
    replaced, _, _ = await world.rewind("search", foreign)
    assert not (await sending).ok
    assert not replaced
    await world.send("search", "next")
    assert "zebra" not in world.last_request()


async def test_a_quotation_in_a_later_turn_replaces_the_session(world: ClaudeWorld) -> None:
    foreign = world.message(FOREIGN)
    old = await world.send("search", foreign)
    await world.send("search", f"what did you mean by: {FOREIGN}?")
    replaced, note, _ = await world.rewind("search", foreign)
    assert replaced
    assert "quotes" in note
    assert world.session("search").generation == 1
    fresh = await world.send("search", "next")
    assert fresh.backend_id != old.backend_id
    assert "zebra" not in world.last_request()


async def test_a_compaction_replaces_the_session(world: ClaudeWorld) -> None:
    foreign = world.message(FOREIGN)
    await world.send("search", foreign)
    await world.send("search", world.message("/compact", raw=True))
    await world.send("search", "after")
    replaced, note, _ = await world.rewind("search", foreign)
    assert replaced
    assert "compacted" in note
    assert (await world.send("search", "next")).ok
    assert "zebra" not in world.last_request()


async def test_a_compaction_before_the_turn_does_not_matter(world: ClaudeWorld) -> None:
    await world.send("search", "an early question")
    await world.send("search", world.message("/compact", raw=True))
    await world.send("search", "after the compaction")
    foreign = world.message(FOREIGN)
    await world.send("search", foreign)
    await world.send("search", "a later question")
    replaced, note, _ = await world.rewind("search", foreign)
    assert not replaced, note
    assert (await world.send("search", "next")).ok
    assert "zebra" not in world.last_request()
    assert "after the compaction" in world.user_texts()


async def test_a_message_that_never_came_changes_nothing(world: ClaudeWorld) -> None:
    before = await world.send("search", "begin")
    replaced, note, _ = await world.rewind("search", world.message(FOREIGN))
    assert not replaced
    assert "never had" in note
    assert world.session("search").backend_id == before.backend_id


async def test_two_turns_are_forgotten_one_after_the_other(world: ClaudeWorld) -> None:
    one, two = (
        world.message(f"{FOREIGN} one"),
        world.message("the giraffe endpoint is far too slow"),
    )
    await world.send("search", "begin")
    await world.send("search", one)
    await world.send("search", "between")
    await world.send("search", two)
    assert not (await world.rewind("search", one))[0]
    assert not (await world.rewind("search", two))[0]
    await world.send("search", "next")
    for word in ("zebra", "giraffe"):
        assert word not in world.last_request()
    assert {"begin", "between"} <= set(world.user_texts())


async def test_no_store_of_the_agent_brings_the_text_back(world: ClaudeWorld) -> None:
    foreign = world.message(FOREIGN)
    await world.send("search", "begin")
    await world.send("search", foreign)
    original = world.transcript("search")
    await world.rewind("search", foreign)
    await world.send("search", "next")
    await world.harness.close()
    assert files_with(b"zebra", original.parents[3]) == [original]
