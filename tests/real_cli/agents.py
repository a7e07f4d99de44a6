"""Where the pinned agents are, and the environment of a person who has set them up."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

INSTALL = Path(__file__).parents[2] / "scripts" / "install-agents"

SURROUNDINGS = {
    name: value
    for name, value in os.environ.items()
    if name in ("ISOLA_AGENTS_DIR", "XDG_CACHE_HOME", "HOME", "PATH")
}
"""As they were before the tests got a home of their own: the cache is found by them."""

KEY = "sk-ant-fake-000000000000000000000000000000000000abcdefghij0123456789"


def find_agent(name: str) -> Path | None:
    """The pinned program of this name, None where it is not installed."""
    found = subprocess.run(
        [INSTALL, "--where"], env=SURROUNDINGS, capture_output=True, text=True, check=False
    )
    if found.returncode:
        return None
    paths = [Path(line) for line in found.stdout.splitlines()]
    return next((path for path in paths if path.name == name), None)


def claude_environment(
    home: Path, binary: Path, model_url: str, surroundings: Mapping[str, str] = SURROUNDINGS
) -> dict[str, str]:
    """A set-up Claude Code with `home` and the model at `model_url`, started from inside tmux and
    another agent."""
    home.mkdir()
    state = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]]}}
    (home / ".claude.json").write_text(json.dumps(state), encoding="utf-8")
    return {
        "HOME": str(home),
        "PATH": f"{binary.parent}{os.pathsep}{surroundings['PATH']}",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDECODE": "1",
        "TMUX": "/tmp/tmux-0/default,1,0",
    }
