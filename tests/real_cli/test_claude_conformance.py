"""The real Claude Code behind our harness keeps the contract."""

from __future__ import annotations

import pytest

from isola_harnesses import claude, conformance
from isola_harnesses.conformance import Subject
from tests.fake_model import FakeModel
from tests.fake_model.reading import objects, texts


def seen_by(model: FakeModel) -> list[str]:
    """All the text of each request."""
    found = []
    for request in model.requests:
        said = [texts(each.get("content")) for each in objects(request.body["messages"])]
        found.append("\n".join(text for each in said for text in each))
    return found


@pytest.mark.parametrize("name", conformance.checks())
async def test_the_claude_harness_keeps_the_contract(
    model: FakeModel, claude_env: dict[str, str], name: str
) -> None:
    subject = Subject(
        create=lambda services: claude.create({}, services),
        seen=lambda: seen_by(model),
        failing="[[error:400]]",
        slow="[[sleep:60]]",
        env=claude_env,
    )
    result = await conformance.run(name, subject)
    conformance.require([result])
    assert not result.skipped
