"""A command's processes: ended in time, with all that they started, and after our own death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from isola_core.errors import HarnessError
from isola_core.ports import FailureKind, SessionState
from tests.harnesses.command_bench import SPAWN, Bench, appears, gone, python, until, written


async def test_a_result_is_taken_though_the_program_does_not_leave(tmp_path: Path) -> None:
    body = """
print(json.dumps({"type": "result", "text": "whole"}), flush=True)
open("pid", "w").write(f"{os.getpid()}\\n")
time.sleep(600)
"""
    one = Bench(
        tmp_path / "b",
        body,
        reply="last-json-line",
        reply_path="text",
        reply_match={"type": "result"},
    )
    assert (await one.say()).reply == "whole"
    await gone(*written(one.session.cwd, "pid"))


async def test_a_silent_program_is_ended(tmp_path: Path) -> None:
    body = "print('started', flush=True); time.sleep(600)"
    one = Bench(tmp_path / "b", body, idle_timeout_s=0.3)
    result = await one.refused("printed nothing for 0.3 s")
    assert result.failure is FailureKind.TIMED_OUT


async def test_a_busy_program_is_ended_after_its_time_though_it_ignores_term(
    tmp_path: Path,
) -> None:
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pid", "w").write(f"{os.getpid()}\\n")
while True: print("busy", flush=True); time.sleep(0.01)
"""
    one = Bench(tmp_path / "b", body, timeout_s=0.5, idle_timeout_s=5)
    result = await one.refused("not done after 0.5 s")
    assert result.failure is FailureKind.TIMED_OUT
    await gone(*written(one.session.cwd, "pid"))


async def test_grandchildren_end_with_the_turn(tmp_path: Path) -> None:
    body = SPAWN + "spawn('same'); spawn('group', process_group=0); print('fine')"
    one = Bench(tmp_path / "b", body)
    started = time.monotonic()
    assert (await one.say()).reply == "fine"
    assert time.monotonic() - started < 5
    await gone(*written(one.session.cwd, "same", "group"))


@pytest.mark.parametrize("way", ["interrupt", "cancel", "close"])
async def test_a_stopped_turn_leaves_no_process(tmp_path: Path, way: str) -> None:
    body = SPAWN + (
        "spawn('same'); spawn('own', start_new_session=True)\n"
        "open('ready', 'w').write(f'{os.getpid()}\\n'); time.sleep(1000)"
    )
    one = Bench(tmp_path / "b", body)
    cwd = one.session.cwd
    assert cwd is not None
    task = asyncio.create_task(one.say())
    leader = int(await appears(cwd / "ready"))
    pids = [leader, *written(cwd, "same", "own")]
    match way:
        case "interrupt":
            await one.harness.interrupt(one.session)
        case "close":
            await one.harness.close()
        case _:
            task.cancel()
    if way == "cancel":
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        assert (await task).failure is FailureKind.CANCELLED
    await gone(*pids)


async def test_a_second_turn_at_the_same_time_is_refused(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "open('ready', 'w').write('now\\n'); time.sleep(1000)")
    assert one.session.cwd is not None
    task = asyncio.create_task(one.say())
    await appears(one.session.cwd / "ready")
    with pytest.raises(HarnessError, match="one at a time"):
        await one.say()
    assert (await one.harness.ensure_session(one.session)).state is SessionState.WORKING
    await one.harness.close()
    await task


OURS = """
import asyncio, sys
from pathlib import Path
from isola_core.clock import SystemClock
from isola_core.ports import Outgoing, SessionRef
from isola_harnesses import command
from isola_harnesses.conformance import MemoryHistory
from isola_harnesses.registry import HarnessServices
state, program, cwd = sys.argv[1:]
services = HarnessServices(MemoryHistory(), SystemClock(), {"PATH": "/usr/bin:/bin"}, Path(state))
harness = command.create({"argv": [sys.executable, "-I", "-S", program]}, services)
session = SessionRef("s-billing", "billing", "proj:billing", 0, cwd=Path(cwd))
asyncio.run(harness.dispatch(session, Outgoing("d", "m", "hello")))
"""


async def test_what_a_killed_program_left_is_ended_and_said(tmp_path: Path) -> None:
    body = SPAWN + (
        "spawn('same'); open('ready', 'w').write(f'{os.getpid()}\\n'); time.sleep(1000)"
    )
    one = Bench(tmp_path / "b", body)
    cwd = one.session.cwd
    assert cwd is not None
    state = cwd.parent / "state"
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "core"), str(root / "harnesses")])
    argv = [sys.executable, "-c", OURS, str(state), str(tmp_path / "b" / "program.py"), str(cwd)]
    with subprocess.Popen(argv, env={"PYTHONPATH": path}) as ours:  # noqa: ASYNC220
        child = int(await appears(cwd / "ready"))
        await until(lambda: noted(state), "the child is not noted")
        with pytest.raises(HarnessError, match=f"process {ours.pid} runs its command"):
            await one.harness.ensure_session(one.session)
        assert psutil.pid_exists(child)
        ours.send_signal(signal.SIGKILL)
        ours.wait(5)
    (grandchild,) = written(cwd, "same")
    assert psutil.pid_exists(child)
    assert psutil.pid_exists(grandchild)
    status = await one.harness.ensure_session(one.session)
    assert "left behind" in status.detail
    await gone(child, grandchild)
    assert "left behind" not in (await one.harness.ensure_session(one.session)).detail


def noted(state: Path) -> bool:
    return bool(list((state / "children").glob("*.json")))


async def test_a_stranger_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "print('fine')")
    assert one.session.cwd is not None
    children = one.session.cwd.parent / "state" / "children"
    argv = python("-c", "input()")
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as stranger:  # noqa: ASYNC220
        one.harness._leftovers.note(one.session, stranger.pid)
        (entry,) = children.glob("*.json")
        found = json.loads(entry.read_text())
        entry.write_text(json.dumps({**found, "started": found["started"] - 10, "owner": 1}))
        status = await one.harness.ensure_session(one.session)
        assert "left behind" not in status.detail
        assert stranger.poll() is None
        assert stranger.stdin is not None
        stranger.stdin.close()
