"""A command harness around a small Python program, and ways to wait for its processes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from isola_core.ports import TurnResult
from isola_harnesses import command
from isola_harnesses.command import CommandHarness
from isola_harnesses.conformance import Host, Subject
from isola_harnesses.registry import HarnessServices

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def python(*argv: str) -> list[str]:
    return [sys.executable, "-I", "-S", *argv]


PREAMBLE = "import json, os, signal, subprocess, sys, time\ntext = sys.stdin.read()\n"


class Bench:
    """One command harness whose program is a Python script given as text.

    The script's `text` is what came on stdin.
    """

    harness: CommandHarness

    def __init__(
        self,
        folder: Path,
        body: str,
        env: Mapping[str, str] | None = None,
        argv: Sequence[str] = (),
        resume: Sequence[str] | None = None,
        **more: object,
    ) -> None:
        folder.mkdir(exist_ok=True)
        program = folder / "program.py"
        program.write_text(PREAMBLE + body)
        started = python(str(program))
        settings = {"argv": [*started, *argv], "timeout_s": 20, **more}
        if resume is not None:
            settings["resume"] = [*started, *resume]

        def make(services: HarnessServices) -> CommandHarness:
            self.harness = command.create(settings, services)
            return self.harness

        run = folder / "run"
        run.mkdir()
        self.host = Host(Subject(create=make, env={**ENV, **(env or {})}), run)
        self.session = self.host.session("billing")

    async def say(self, text: str = "hello") -> TurnResult:
        self.session, result = await self.host.send(self.session, text)
        return result

    async def refused(self, *words: str) -> TurnResult:
        result = await self.say()
        assert not result.ok
        assert result.reply == ""
        for word in words:
            assert word in result.error
        return result


async def gone(*pids: int) -> None:
    """Wait until none of these processes lives."""
    await until(lambda: all(zombie(pid) for pid in pids), "a process is still alive")


def zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


async def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fails with `what` when it does not come."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)


async def appears(path: Path) -> str:
    """Wait for a file with a whole line."""
    await until(lambda: whole(path) is not None, f"{path} does not appear")
    return whole(path) or ""


def whole(path: Path) -> str | None:
    text = path.read_text() if path.exists() else ""
    return text.strip() if text.endswith("\n") else None


def written(folder: Path | None, *names: str) -> list[int]:
    """The process ids that the program wrote into these files of its folder."""
    assert folder is not None
    return [int((folder / name).read_text()) for name in names]


SPAWN = """
def spawn(name, **more):
    code = "import time; time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], **more)
    open(name, "w").write(f"{child.pid}\\n")
"""
