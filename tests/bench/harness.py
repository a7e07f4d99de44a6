"""What driving the real Claude Code costs a turn beyond the agent's own time, and what texts suffer.

Runs itself again in a network namespace that has loopback alone, as `scripts/real-cli-tests` does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from isola_core.clock import SystemClock
from isola_core.ports import Outgoing, SessionRef, TurnResult
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.harness import ClaudeHarness
from tests.bench.figures import Figures, Target
from tests.fake_model import FakeModel
from tests.fake_model.reading import objects, texts
from tests.real_cli.agents import claude_environment, find_agent
from tests.real_cli.random_texts import random_text

TURNS = 200
MOST_OVERHEAD_MS = 50.0


def run(data: Path | None, turns: int = TURNS) -> Figures:
    """Measure one session of `turns` random messages. Needs no data."""
    binary = find_agent("claude")
    if binary is None:
        return Figures({"claude_stream": "not measured: run scripts/install-agents"})
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        return _alone(turns)
    with tempfile.TemporaryDirectory() as folder, FakeModel() as model:
        model.answer = lambda request: "ok"
        return asyncio.run(_measure(Path(folder), binary, model, turns))


def _alone(turns: int) -> Figures:
    code = (
        "import json; from tests.bench import harness; "
        f"found = harness.run(None, {turns}); print(json.dumps(dict(found.figures)))"
    )
    enter = 'ip link set lo up && exec "$@"'
    option = "-n" if os.geteuid() == 0 else "-rn"
    command = ["unshare", option, "sh", "-c", enter, "sh", sys.executable, "-c", code]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return Figures({"claude_stream": "not measured: no network namespace can be made"})
    figures = json.loads(done.stdout.splitlines()[-1])
    return Figures(figures, _targets(figures))


def _targets(figures: dict[str, float | int | str]) -> dict[str, Target]:
    limits = {"overhead_ms_p50": MOST_OVERHEAD_MS, "altered": 0, "lost": 0, "doubled": 0}
    return {name: Target(float(figures[name]), limit) for name, limit in limits.items()}


async def _measure(folder: Path, binary: Path, model: FakeModel, turns: int) -> Figures:
    (folder / "project").mkdir()
    env = claude_environment(folder / "home", binary, model.url, dict(os.environ))
    harness = ClaudeHarness(ClaudeSettings(), env, SystemClock())
    session = SessionRef("s-bench", "bench", "proj:bench", 0, cwd=folder / "project")
    source = random.Random(20261130)
    sent, own_ms, whole_ms, first = [], [], [], 0.0
    try:
        for number in range(turns):
            text = random_text(source, number)
            begun = time.perf_counter()
            result = await harness.dispatch(session, Outgoing(f"d-{number}", "m", text))
            took = (time.perf_counter() - begun) * 1000
            if not result.ok:
                raise RuntimeError(result.error)
            if number == 0:
                first = took
                continue
            whole_ms.append(took)
            own_ms.append(_own_time(result))
            sent.append(f" {text}" if text.startswith("/") else text)
    finally:
        await harness.close()
    return _figures(sent, own_ms, whole_ms, first, model)


def _own_time(result: TurnResult) -> float:
    """Milliseconds that the agent says it spent on the turn."""
    own = result.meta.get("duration_ms")
    return float(own) if isinstance(own, int | float) else 0.0


def _figures(
    sent: list[str], own_ms: list[float], whole_ms: list[float], first: float, model: FakeModel
) -> Figures:
    messages = objects(model.requests[-1].body["messages"])
    arrived = [
        text
        for each in messages
        if each.get("role") == "user"
        for text in texts(each.get("content"))
        if "⟦" in text
    ]
    overheads = sorted(whole - own for whole, own in zip(whole_ms, own_ms, strict=True))
    marks = [_mark(text) for text in arrived]
    figures: dict[str, float | int | str] = {
        "turns": len(sent),
        "first_turn_ms": first,
        "turn_ms_p50": statistics.median(whole_ms),
        "own_ms_p50": statistics.median(own_ms),
        "overhead_ms_p50": statistics.median(overheads),
        "overhead_ms_p95": overheads[int(len(overheads) * 0.95)],
        "altered": sum(_mark(text) in marks and text not in arrived for text in sent),
        "lost": sum(_mark(text) not in marks for text in sent),
        "doubled": len(marks) - len(set(marks)),
    }
    return Figures(figures, _targets(figures))


def _mark(text: str) -> str:
    return text[text.rindex("⟦") :]
