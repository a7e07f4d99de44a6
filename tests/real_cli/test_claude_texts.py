"""Two hundred random messages over three projects: none altered, lost, doubled or misplaced."""

from __future__ import annotations

import asyncio
import random

from tests.fake_model.reading import objects, texts
from tests.real_cli.claude_world import ClaudeWorld
from tests.real_cli.random_texts import random_text

MESSAGES = 200
PROJECTS = ("billing", "search", "docs")


async def test_random_messages_arrive_exactly_once_in_their_own_session(
    world: ClaudeWorld,
) -> None:
    source = random.Random(20261130)
    world.model.answer = lambda request: "ok"
    sent: dict[str, list[str]] = {
        name: [
            random_text(source, number)
            for number in range(place, MESSAGES, len(PROJECTS))
        ]
        for place, name in enumerate(PROJECTS)
    }  # fmt: skip

    async def send_all(project: str) -> None:
        for text in sent[project]:
            result = await world.send(project, text)
            assert (result.ok, result.received) == (True, True), text[:80]

    await asyncio.gather(*map(send_all, PROJECTS))

    expected = {
        name: [f" {text}" if text.startswith("/") else text for text in sent[name]]
        for name in PROJECTS
    }
    # Each request carries the whole history of its session: the longest one is all of it.
    histories: dict[str, list[str]] = {name: [] for name in PROJECTS}
    for request in world.model.requests:
        marked = _marked(request.body)
        (owner,) = [name for name in PROJECTS if marked[0] == expected[name][0]]
        if len(marked) > len(histories[owner]):
            histories[owner] = marked
    assert len(world.model.requests) == MESSAGES
    for name in PROJECTS:
        assert histories[name] == expected[name]


def _marked(body: dict[str, object]) -> list[str]:
    return [
        text
        for message in objects(body["messages"])
        if message.get("role") == "user"
        for text in texts(message.get("content"))
        if "⟦" in text
    ]
