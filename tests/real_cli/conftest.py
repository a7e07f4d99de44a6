"""The real agents, each with a home of its own and the project's fake model.

They run only where loopback is the one network there is: they call their makers by themselves.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from isola_core.clock import SystemClock
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from tests.fake_model import FakeModel
from tests.real_cli.agents import claude_environment, find_agent
from tests.real_cli.claude_world import ClaudeWorld


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.real_cli)


@pytest.fixture(scope="session")
def claude_binary() -> Path:
    networks = [name for _, name in socket.if_nameindex()]
    if networks != ["lo"]:
        pytest.skip("a loopback-only network namespace is needed: run scripts/real-cli-tests")
    found = find_agent("claude")
    if found is None:
        pytest.skip("the pinned Claude Code is not installed: run scripts/install-agents")
    return found


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


@pytest.fixture
def claude_env(claude_binary: Path, model: FakeModel, tmp_path: Path) -> dict[str, str]:
    return claude_environment(tmp_path / "home", claude_binary, model.url)


@pytest.fixture
async def world(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> AsyncIterator[ClaudeWorld]:
    """A harness with the real program, and projects in folders of their own."""
    world = ClaudeWorld(
        lambda: ClaudeHarness(ClaudeSettings(), claude_env, SystemClock()),
        model,
        tmp_path,
        Path(claude_env["HOME"]) / ".claude",
    )
    yield world
    await world.harness.close()
