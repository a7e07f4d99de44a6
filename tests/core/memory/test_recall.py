"""Recall: ranked, any query safe, both languages, nothing of another project, no ghosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isola_core.model import ReadSet
from isola_core.store import memories
from isola_core.store.transaction import Transaction
from tests.core.world import World, open_world

LINES = (
    "we decided to store invoices in Postgres",
    "never delete audit rows before the yearly export",
    "the pre-edit hook of C++ files runs clang-format",
    "throughput was 3 GB/s on ubuntu 20.04",
    "发票迁移必须保留审计记录",
    "用户登录页面改用新的设计",
)


async def _fill(world: World, project: str, lines: tuple[str, ...] = LINES) -> None:
    for line in lines:
        await world.say(f"@{project} {line}")
    await world.deliver()
    await world.pass_window()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("postgres", LINES[0]),
        ("storing an invoice", LINES[0]),
        ("pre-edit", LINES[2]),
        ("C++", LINES[2]),
        ("GB/s", LINES[3]),
        ("ubuntu 20.04", LINES[3]),
        ("审计", LINES[4]),
        ("发票迁移", LINES[4]),
        ("登录", LINES[5]),
    ],
)
async def test_a_query_finds_its_memory_first(world: World, query: str, found: str) -> None:
    await _fill(world, "billing")
    assert (await world.remembered("billing", query))[0].content == found


@pytest.mark.parametrize(
    "query", ["", "   ", '"', "*", "AND", "OR NOT", "(", "zzzqqq", "，。", "^", "-"]
)
async def test_a_query_without_meaning_finds_nothing(world: World, query: str) -> None:
    await _fill(world, "billing")
    assert await world.remembered("billing", query) == []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.one_of(st.text(max_size=200), st.sampled_from(["a" * 10_000, '"NEAR(a b)" col:x'])))
async def test_any_text_is_a_safe_query(
    query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world, closing = await _shared(tmp_path_factory)
    try:
        for memory in await world.remembered("billing", query):
            assert memory.content in LINES
    finally:
        await closing()


async def _shared(factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """A filled store, made once, opened anew for each example."""
    folder = Path(factory.getbasetemp()) / "any-query"
    fresh = not folder.exists()
    context = open_world(folder)
    world = await context.__aenter__()
    if fresh:
        await _fill(world, "billing")
    return world, lambda: context.__aexit__(None, None, None)


async def test_no_leg_returns_another_projects_memory(world: World) -> None:
    await _fill(world, "billing", ("we decided ALPHA for invoices",))
    await _fill(world, "search", ("we decided BETA for invoices",))
    owner, label = world.core.owner.id, world.core.owner.label
    read_set = ReadSet(owner, (f"proj.{label}.billing",))

    def every_leg(tx: Transaction) -> list[str]:
        decisions = [str(row["id"]) for row in tx.all("SELECT id FROM decisions")]
        legs = [
            *memories.search_memories(tx, read_set, ["decided", "invoices", "beta"], 50),
            memories.recent_memories(tx, read_set, 50),
            *(memories.memories_of_decision(tx, read_set, each) for each in decisions),
        ]
        assert memories.count_memories(tx, read_set) == 1
        return [memory.content for leg in legs for memory in leg]

    found = await world.store.read(every_leg)
    assert found
    assert set(found) == {"we decided ALPHA for invoices"}


async def test_the_filter_comes_before_the_limit(world: World) -> None:
    await _fill(world, "billing", tuple(f"we decided rule {n} about caching" for n in range(40)))
    await _fill(world, "search", ("we decided one rule about caching",))
    assert len(await world.remembered("search", "rule about caching")) == 1


async def test_retired_memories_leave_no_ghosts(world: World) -> None:
    decisions = [await world.say(f"@billing we decided that {n} queues stay") for n in range(6)]
    await world.deliver()
    await world.pass_window()
    for decision in decisions[:5]:
        await world.service.withdraw(decision.id)
    assert [memory.content for memory in await world.remembered("billing", "queues stay")] == [
        "we decided that 5 queues stay"
    ]


async def test_the_same_text_in_two_projects_is_two_memories(world: World) -> None:
    await _fill(world, "billing", ("we decided on tabs",))
    await _fill(world, "search", ("we decided on tabs",))
    assert len(await world.remembered("billing", "tabs")) == 1
    assert len(await world.remembered("search", "tabs")) == 1


def test_a_read_set_without_scopes_or_owner_does_not_exist() -> None:
    for owner, scopes in (("", ("a.b",)), ("o", ()), ("o", ("",))):
        with pytest.raises(ValueError, match="read set"):
            ReadSet(owner, scopes)
