"""One child process that speaks lines of JSON, in a process group of its own.

Only processes that this child started are ever ended: its group while the group is provably still
ours, and the descendants that were seen while it lived.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from isola_harnesses import process_group

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of one line; a longer one is dropped, and `Child.dropped` counts it."""

_CHUNK: Final = 256 * 1024
_STDERR_KEPT: Final = 16 * 1024
_TERM_WAIT: Final = 2.0
_LEFTOVER_GRACE: Final = 1.0
_KILL_WAIT: Final = 10.0
_STDERR_WAIT: Final = 0.2
_LOOK: Final = 0.25
_POLL: Final = 0.01


class Child:
    """A running child; made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = bytearray()
        self._stderr_task = asyncio.create_task(self._read_stderr())
        self._sending = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None
        self._family: frozenset[psutil.Process] = frozenset()
        self.dropped = 0

    @classmethod
    async def start(cls, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Child:
        """Start `argv` in `cwd` as the leader of a new process group. Raises `OSError`."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._process.returncode

    @property
    def usable(self) -> bool:
        """Whether it runs and is not being ended."""
        return self.returncode is None and self._ending is None

    @property
    def stderr_tail(self) -> str:
        """The last of what it wrote to stderr, for diagnostics."""
        return self._stderr.decode("utf-8", "replace").strip()

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of its stdout without their ends, until it closes it or has ended.

        What it started may hold its stdout open for ever, so its end is looked for too.
        """
        pieces: list[bytes] = []
        held = 0
        while chunk := await self._read():
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                line = b"".join([*pieces, piece])
                if held + len(piece) > MAX_LINE:
                    self.dropped += 1
                elif line:
                    yield line
                pieces, held = [], 0
            held += len(rest)
            if held > MAX_LINE:
                pieces = []
            elif rest:
                pieces.append(rest)
        if pieces and held <= MAX_LINE:
            yield b"".join(pieces)

    async def look_at_family(self) -> None:
        """Remember its descendants: the agent's commands leave its group, and outlive its death."""
        if self.returncode is None:
            found = await asyncio.to_thread(process_group.descendants, self.pid)
            self._family = frozenset(found) | {each for each in self._family if each.is_running()}

    async def _read(self) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        reading = asyncio.create_task(stdout.read(_CHUNK))
        try:
            while not (await asyncio.wait({reading}, timeout=_LOOK))[0]:
                if self.returncode is not None:
                    return b""
            return reading.result()
        finally:
            reading.cancel()

    async def send(self, message: object) -> None:
        """Write one line. Raises `ConnectionError` when the child takes nothing any more."""
        stdin = self._process.stdin
        assert stdin is not None
        async with self._sending:
            if stdin.is_closing():
                raise BrokenPipeError("the child's stdin is closed")
            stdin.write(json.dumps(message).encode("ascii") + b"\n")
            await stdin.drain()

    async def end(self, grace: float) -> None:
        """End it and all that it started: close stdin, wait `grace` seconds, TERM, then KILL.

        May be called more than once and after it has ended by itself. Survives cancellation.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace))
        await asyncio.shield(self._ending)

    async def _end(self, grace: float) -> None:
        await self.look_at_family()
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        if not await self._ended_within(grace):
            self._signal_group(signal.SIGTERM)
            if not await self._ended_within(_TERM_WAIT):
                self._signal_group(signal.SIGKILL)
                await self._ended_within(_KILL_WAIT)
        await asyncio.to_thread(_end_leftovers, self.pid, self._family)
        await asyncio.wait({self._stderr_task}, timeout=_STDERR_WAIT)
        self._stderr_task.cancel()

    async def _ended_within(self, seconds: float) -> bool:
        # Not `wait()`: in some versions of Python it also waits for whoever holds the pipes.
        end = time.monotonic() + seconds
        while self.returncode is None and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        return self.returncode is not None

    def _signal_group(self, number: int) -> None:
        # The leader has not been waited for, so its pid and group cannot be anybody else's.
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(_CHUNK):
            self._stderr += chunk
            del self._stderr[:-_STDERR_KEPT]


def _end_leftovers(pid: int, family: Iterable[psutil.Process]) -> None:
    """End what outlived the leader: its group and session, and what had left them.

    A pid is not given out again while a group or session of that number has members; so where the
    number is free as a process and used as a group, the group is the one we made.
    """
    left = list(family)
    if not psutil.pid_exists(pid):
        left += process_group.members(pid)
    process_group.end_all(left, _LEFTOVER_GRACE)
