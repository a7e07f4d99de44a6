"""The real agents, each with a home of its own and the project's fake model.

They run only where loopback is the one network there is: they call their makers by themselves.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from isola_core.clock import SystemClock
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from tests.fake_model import FakeModel
from tests.real_cli.claude_world import ClaudeWorld

INSTALL = Path(__file__).parents[2] / "scripts" / "install-agents"

SURROUNDINGS = {
    name: value
    for name, value in os.environ.items()
    if name in ("ISOLA_AGENTS_DIR", "XDG_CACHE_HOME", "HOME", "PATH")
}
"""As they were before the tests got a home of their own: the cache is found by them."""

KEY = "sk-ant-fake-000000000000000000000000000000000000abcdefghij0123456789"


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
    found = subprocess.run(
        [INSTALL, "--where"], env=SURROUNDINGS, capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip("the pinned Claude Code is not installed: run scripts/install-agents")
    return Path(found.stdout.strip())


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


@pytest.fixture
def claude_env(claude_binary: Path, model: FakeModel, tmp_path: Path) -> dict[str, str]:
    """The environment of a person whose Claude Code is set up, with the fake model behind it."""
    home = tmp_path / "home"
    home.mkdir()
    state = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]]}}
    (home / ".claude.json").write_text(json.dumps(state), encoding="utf-8")
    return {
        "HOME": str(home),
        "PATH": f"{claude_binary.parent}{os.pathsep}{SURROUNDINGS['PATH']}",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDECODE": "1",
        "TMUX": "/tmp/tmux-0/default,1,0",
    }


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
