"""Runs one child to its end: input given and closed, output bounded, its whole group ended.

The child leads a session of its own. Its stdin is closed as soon as its input is written (it is
never our terminal). Of each output the last bytes are kept. However the run ends, the child and
all that it started are gone afterwards.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import psutil

from isola_harnesses import process_group

_CHUNK: Final = 64 * 1024
_DRAIN_S: Final = 0.5
"""How long an output that outlives the group is read on."""


class Ending(StrEnum):
    """Why a run is over."""

    EXITED = "exited"
    RESULT = "result"
    """Its result is complete and it did not leave by itself."""
    SILENT = "silent"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes of one run.

    `linger_s` is what a child may still do after its result before it is ended; `grace_s` lies
    between TERM and KILL; `kept_bytes` of each output are kept, the last ones.
    """

    total_s: float
    idle_s: float | None = None
    linger_s: float = 2.0
    grace_s: float = 2.0
    kept_bytes: int = 8 * 2**20


class Tail:
    """The last bytes of an output, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._kept += len(chunk)
        while self._kept - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self._kept -= gone
            self.dropped += gone

    def bytes(self) -> bytes:
        return b"".join(self._chunks)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `status` is None where the child did not end by itself.

    `read_all` says whether the child took the whole input.
    """

    ending: Ending
    status: int | None
    stdout: Tail
    stderr: Tail
    read_all: bool
    survivors: tuple[int, ...] = ()


class OneShot:
    """One run of one child; `run` is called once."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        given: bytes,
        limits: Limits,
        is_result: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`is_result` says of a line of output (stdout or stderr) whether it is the result."""
        self._argv, self._cwd, self._env = list(argv), cwd, dict(env)
        self._limits = limits
        self._is_result = is_result
        self._unsent = memoryview(given)
        self._input: tuple[int, int] | None = None
        self._out, self._err = Tail(limits.kept_bytes), Tail(limits.kept_bytes)
        self._lines: dict[int, bytes] = {}
        self._open: set[int] = set()
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._over = asyncio.Event()
        self._interrupted = False
        self._lingering = False
        self._active = 0.0
        self._unread = 0

    async def run(self, started: Callable[[int], None] = lambda pid: None) -> Outcome:
        """Start the child, tell `started` its pid, wait for its end. Raises `OSError`.

        Cancelling ends the child too, before the cancellation goes on.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        if self._interrupted:
            return Outcome(Ending.INTERRUPTED, None, self._out, self._err, read_all=False)
        if self._unsent:
            self._input = self._open_input()
        try:
            # Not in a thread: a cancellation in between would leave a child that nobody knows.
            self._child = subprocess.Popen(  # noqa: ASYNC220
                self._argv,
                cwd=self._cwd,
                env=self._env,
                stdin=self._input[0] if self._input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._close_input()
            raise
        survivors: tuple[int, ...] = ()
        try:
            started(self._child.pid)
            self._attach()
            ending = await self._wait()
        finally:
            ended = asyncio.create_task(self._end())
            try:
                survivors = await asyncio.shield(ended)
            except asyncio.CancelledError:
                await ended
                raise
        status = self._child.returncode if ending is Ending.EXITED else None
        return Outcome(ending, status, self._out, self._err, not self._unread, survivors)

    def interrupt(self) -> None:
        """End the run now; it counts as INTERRUPTED unless it is over already."""
        if not self._over.is_set():
            self._interrupted = True
            self._over.set()

    def _attach(self) -> None:
        """Everything of the child is watched from the event loop; nothing blocks."""
        child = self._child
        for pipe, tail in ((child.stdout, self._out), (child.stderr, self._err)):
            assert pipe is not None
            fd = pipe.fileno()
            os.set_blocking(fd, False)
            self._open.add(fd)
            self._lines[fd] = b""
            self._loop.add_reader(fd, self._read, fd, tail)
        if self._input is not None:
            self._loop.add_writer(self._input[1], self._write)
        self._active = self._loop.time()
        self._watch_exit()

    def _watch_exit(self) -> None:
        """Notice the exit without reaping, so that pid and group cannot be anybody else's."""
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self._child.pid)
            self._loop.add_reader(self._pidfd, self._left)
            return

        def wait() -> None:
            self._child.wait()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._left)

        threading.Thread(target=wait, name="isola-child", daemon=True).start()

    def _left(self) -> None:
        if hasattr(self, "_pidfd"):
            self._loop.remove_reader(self._pidfd)
        self._exited.set()
        self._over.set()

    def _read(self, fd: int, tail: Tail) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._loop.remove_reader(fd)
            self._open.discard(fd)
            if not self._open:
                self._closed.set()
                self._linger()
            return
        self._active = self._loop.time()
        tail.add(chunk)
        if self._is_result is not None and not self._lingering:
            self._look_for_result(fd, chunk)

    def _look_for_result(self, fd: int, chunk: bytes) -> None:
        assert self._is_result is not None
        *whole, rest = (self._lines[fd] + chunk).split(b"\n")
        self._lines[fd] = rest if len(rest) <= self._limits.kept_bytes else b""
        if any(self._is_result(line) for line in whole):
            self._linger()

    def _linger(self) -> None:
        """Its result is there: it may leave by itself for a while."""
        if not self._lingering:
            self._lingering = True
            self._loop.call_later(self._limits.linger_s, self._over.set)

    def _open_input(self) -> tuple[int, int]:
        """A pipe with the input's beginning in it, so that no child is too fast for its input.

        We keep the reading end too: what is left in it shows what the child did not read.
        """
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        self._fill_pipe(writing)
        return reading, writing

    def _fill_pipe(self, writing: int) -> None:
        with suppress(BlockingIOError):
            while self._unsent:
                self._unsent = self._unsent[os.write(writing, self._unsent[:_CHUNK]) :]

    def _write(self) -> None:
        assert self._input is not None
        reading, writing = self._input
        self._fill_pipe(writing)
        self._active = self._loop.time()
        if not self._unsent:
            self._loop.remove_writer(writing)
            os.close(writing)
            self._input = (reading, -1)

    def _close_input(self) -> None:
        """Close the input; counts the bytes that the child did not read."""
        if self._input is None:
            return
        reading, writing = self._input
        self._input = None
        left = fcntl.ioctl(reading, termios.FIONREAD, bytes(4))
        self._unread = len(self._unsent) + int.from_bytes(left, sys.byteorder)
        os.close(reading)
        if writing >= 0:
            self._loop.remove_writer(writing)
            os.close(writing)

    async def _wait(self) -> Ending:
        limits = self._limits
        end = self._loop.time() + limits.total_s
        while True:
            until = end if limits.idle_s is None else min(end, self._active + limits.idle_s)
            try:
                async with asyncio.timeout_at(until):
                    await self._over.wait()
            except TimeoutError:
                if until == end:
                    return Ending.TIMED_OUT
                if limits.idle_s is not None and until >= self._active + limits.idle_s:
                    return Ending.SILENT
                continue
            if self._interrupted:
                return Ending.INTERRUPTED
            return Ending.EXITED if self._exited.is_set() else Ending.RESULT

    async def _end(self) -> tuple[int, ...]:
        """End the group, read what is left, let go of the pipes; returns pids that survived."""
        self._over.set()
        child = self._child
        family = [] if self._exited.is_set() else process_group.descendants(child.pid)
        grace = self._limits.grace_s
        try:
            if not self._exited.is_set():
                self._signal(signal.SIGTERM)
                try:
                    await asyncio.wait_for(self._exited.wait(), grace)
                except TimeoutError:
                    grace = 0.0
            left = {*family, *await asyncio.to_thread(self._members)}
            alive = await asyncio.to_thread(process_group.end_all, left, grace)
            self._signal(signal.SIGKILL)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), _DRAIN_S)
            return tuple(each.pid for each in alive)
        finally:
            self._signal(signal.SIGKILL)
            self._detach()

    def _members(self) -> list[psutil.Process]:
        pid = self._child.pid
        if self._child.returncode is not None and psutil.pid_exists(pid):
            return []  # reaped, and somebody else has the number by now
        return process_group.members(pid)

    def _signal(self, number: int) -> None:
        """Signal the group while its leader has not been reaped, so while it is surely ours."""
        if self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)

    def _detach(self) -> None:
        child = self._child
        for fd in self._open:
            self._loop.remove_reader(fd)
        self._close_input()
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if hasattr(self, "_pidfd"):
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            del self._pidfd
        child.wait()
