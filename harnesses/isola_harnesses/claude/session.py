"""One project's Claude Code: its child process, the running turn, its open questions.

The child is started by the first message and lives on; an idle one is ended and the next message
wakes the same session with `--resume`. There is one message in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isola_core.errors import Conflict, HarnessError, NotFound
from isola_core.ports import (
    Clock,
    Outgoing,
    Question,
    SessionRef,
    SessionState,
    Sink,
    TurnEvent,
    TurnEventKind,
    TurnResult,
)
from isola_harnesses.claude import results, stream, transcript
from isola_harnesses.claude.environment import (
    ClaudeSettings,
    arguments,
    child_environment,
    config_home,
    find_binary,
)
from isola_harnesses.claude.process import Child
from isola_harnesses.claude.questions import Request, read_request

_NOISE_KEPT: Final = 20
_NOISE_LINE: Final = 400
_LOOK: Final = 0.25
"""Seconds between two looks at a running turn: at its limits, and for its record."""

Changed = Callable[[SessionRef, tuple[Question, ...]], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that waiting for the child may take."""

    end: float = 5.0
    """From closing its stdin until it is told to end."""
    interrupt: float = 10.0
    """From the interrupt to the turn's end; then the child is ended."""
    receipt: float = 3.0
    """From the turn's end until its transcript must prove the receipt."""
    silence: float = 60.0
    """Without a line before the person is told, once more every so often."""
    family: float = 2.0
    """Between two looks at what it has started (one takes some 5 ms)."""
    holder: float = 30.0
    """For another process that has the session open (an orphan that finishes its turn)."""


class ClaudeSession:
    """The live side of one session; `backend_id` and `cwd` are fixed."""

    def __init__(
        self,
        ref: SessionRef,
        settings: ClaudeSettings,
        env: Mapping[str, str],
        clock: Clock,
        changed: Changed,
        limits: Limits,
    ) -> None:
        assert ref.backend_id is not None
        assert ref.cwd is not None
        self.ref = ref
        self.backend_id: str = ref.backend_id
        self.cwd: Path = ref.cwd
        self.home = config_home(env)
        self._settings, self._env, self._clock = settings, env, clock
        self._changed, self._limits = changed, limits
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None
        self._idle: asyncio.Task[None] | None = None
        self._turn: stream.Turn | None = None
        self._watch: transcript.ReceiptWatch | None = None
        self._ended = asyncio.Event()
        self._heard = 0
        self._requests: dict[str, Request] = {}
        self._noise: deque[str] = deque(maxlen=_NOISE_KEPT)
        self._background = False
        self._numbers = itertools.count(1)

    @property
    def state(self) -> SessionState:
        if self.questions:
            return SessionState.NEEDS_USER
        if self._turn is not None:
            return SessionState.WORKING
        running = self._child is not None and self._child.returncode is None
        return SessionState.IDLE if running else SessionState.ASLEEP

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(each for request in self._requests.values() for each in request.open)

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._child.pid if self._child and self._child.returncode is None else None

    async def turn(self, message: Outgoing, sink: Sink) -> TurnResult:
        """Send one message and wait for the end of its turn."""
        if self._turn is not None:
            raise Conflict("A turn is running in this session; it takes one message at a time.")
        self._stop_idling()
        text = transcript.sent_text(message)
        turn = stream.Turn(transcript.turn_id(message.delivery), text, message.raw, sink)
        self._turn = turn
        self._noise.clear()
        try:
            while True:
                old = self._child
                child = await self._awake()
                if turn.interrupted:
                    return results.never_sent(turn, self.backend_id)
                result = await self._once(turn, child)
                if result.ok or result.written or child is not old or turn.interrupted:
                    return result
                # It had died before it took the message, and we only noticed by writing to it.
        except asyncio.CancelledError:
            await asyncio.shield(self._stop(turn))
            raise
        finally:
            self._turn = None
            self._watch = None
            if turn.interrupted:
                self._forget_requests()
            self._start_idling()

    async def interrupt(self) -> None:
        """Ask the running turn to end; `turn` returns. Without a turn: no effect."""
        turn, child = self._turn, self._child
        if turn is None or turn.interrupted:
            return
        turn.interrupted = True
        if child is None or not turn.submitted:
            return
        with contextlib.suppress(TimeoutError):
            line = stream.interrupt_line(f"isola-{next(self._numbers)}")
            await asyncio.wait_for(self._send(child, line), 1.0)

    async def answer(self, question: str, choice: str, text: str) -> None:
        """Answer an open question. Raises `NotFound`, `InvalidInput`."""
        for request in self._requests.values():
            for each in request.open:
                if each.id == question:
                    await self._answer(request, each, choice, text)
                    return
        raise NotFound("This question is no longer open.")

    async def end(self) -> None:
        """End the child; a running turn fails. The session itself stays."""
        self._stop_idling()
        child, reader = self._child, self._reader
        if child is not None:
            await child.end(self._limits.end)
        if reader is not None:
            await reader
        if self._child is child:
            self._child = self._reader = None

    async def _awake(self) -> Child:
        """The running child, started if there is none."""
        if self._child is not None and self._child.usable:
            return self._child
        await self.end()
        await self.wait_for_holders()
        binary = find_binary(self._settings, self._env)
        path = transcript.transcript_path(self.home, self.cwd, self.backend_id)
        if not path.exists() and (
            others := transcript.transcripts_elsewhere(self.home, self.cwd, self.backend_id)
        ):
            raise HarnessError(
                f"The history of this session belongs to another folder ({others[0].parent.name}), "
                f"not to {self.cwd}. Give the project its old path back, or reset the session."
            )
        argv = arguments(self._settings, binary, self.backend_id, resume=path.exists())
        try:
            child = await Child.start(argv, self.cwd, child_environment(self._settings, self._env))
        except OSError as error:
            raise HarnessError(f"Claude Code cannot be started in {self.cwd}: {error}.") from error
        self._child = child
        self._background = False
        self._reader = asyncio.create_task(self._read(child))
        return child

    async def wait_for_holders(self) -> None:
        """Wait until no other process has the session open. Raises `HarnessError` when it stays.

        An agent whose program was killed finishes its turn and then ends by itself.
        """
        for _ in range(max(1, round(self._limits.holder / 0.1))):
            found = await asyncio.to_thread(transcript.holders, self.home, self.backend_id)
            if not [each for each in found if each.pid != self.pid]:
                return
            await asyncio.sleep(0.1)
        raise HarnessError(
            f"Another Claude Code (process {found[0].pid}) has this session open. Close it there, "
            "then send the message again."
        )

    async def _read(self, child: Child) -> None:
        try:
            async for line in child.lines():
                self._heard += 1
                record = transcript.parse(line)
                if record is None:
                    self._noise.append(line[:_NOISE_LINE].decode("utf-8", "replace"))
                else:
                    await self._take(child, record)
        finally:
            # Also where it only closed its stdout, and for what it left behind in its group.
            await child.end(self._limits.end)
            self._forget_requests()
            self._ended.set()

    async def _take(self, child: Child, line: transcript.Record) -> None:
        match line.get("type"):
            case "control_request":
                await self._asked(child, line)
            case "control_cancel_request":
                if self._requests.pop(str(line.get("request_id")), None):
                    self._tell()
            case "system" if line.get("subtype") == "background_tasks_changed":
                self._background = bool(line.get("tasks"))
        turn = self._turn
        if turn is None or self._ended.is_set():
            return
        if turn.take(line):
            self._ended.set()
        if turn.started:
            self._prove(turn)

    async def _asked(self, child: Child, line: transcript.Record) -> None:
        request_id, request = str(line.get("request_id")), line.get("request")
        found = read_request(request_id, request) if isinstance(request, dict) else None
        if found is None:
            await self._send(child, stream.refusal_line(request_id, "not supported here"))
            return
        self._requests[request_id] = found
        self._tell()

    async def _answer(self, request: Request, question: Question, choice: str, text: str) -> None:
        response = request.answer(question, choice, text)
        if response is not None:
            self._requests.pop(request.id, None)
            if self._child is not None:
                await self._send(self._child, stream.response_line(request.id, response))
        self._tell()

    async def _send(self, child: Child, line: Mapping[str, object]) -> None:
        # Where it takes nothing any more its end is noticed by the reader.
        with contextlib.suppress(ConnectionError):
            await child.send(line)

    def _prove(self, turn: stream.Turn) -> None:
        """Tell the sink that the message arrived, once the transcript has exactly our text."""
        if turn.received or self._watch is None:
            return
        record = self._watch.look()
        if record is not None and (turn.raw or transcript.content(record) == turn.text):
            turn.received = True
            proof = f"transcript record {turn.uuid}"
            turn.sink(TurnEvent(TurnEventKind.RECEIVED, proof))

    async def _once(self, turn: stream.Turn, child: Child) -> TurnResult:
        """Submit the message to a child and wait for what comes of it."""
        turn.submitted = True
        self._ended.clear()
        if not child.usable:
            self._ended.set()
        self._watch = transcript.ReceiptWatch(self.home, self.cwd, self.backend_id, turn.uuid)
        line = stream.user_line(turn.text, turn.uuid)
        # Beside the waiting: a child that reads nothing must still be noticed and ended.
        sending = asyncio.create_task(self._send(child, line))
        try:
            timed_out = await self._until_ended(turn, child)
        finally:
            sending.cancel()
        meta = stream.diagnostics(turn)
        if self._noise:
            meta["noise"] = list(self._noise)
        if child.dropped:
            meta["dropped_lines"] = child.dropped
        tail = child.stderr_tail
        if turn.result is None:
            written, reply = await asyncio.to_thread(self._look_up, turn)
            end = results.End(child.returncode, tail, timed_out, written, reply)
            return results.without_result(turn, meta, end, self.backend_id)
        await self._settle(turn)
        if turn.session_id:
            # After `/clear` the child goes on in a new session.
            self.backend_id = turn.session_id
        end = results.End(child.returncode, tail, timed_out)
        return results.with_result(turn, meta, end, self.backend_id)

    async def _until_ended(self, turn: stream.Turn, child: Child) -> bool:
        """Wait for the end of the turn; True when it took longer than it may."""
        limit, used, timed_out = self._settings.timeout_s, 0.0, False
        silent = stopping = unseen = 0.0
        heard = self._heard
        while True:
            try:
                await asyncio.wait_for(self._ended.wait(), _LOOK)
            except TimeoutError:
                pass
            else:
                return timed_out
            self._prove(turn)
            unseen += _LOOK
            if unseen >= self._limits.family:
                unseen = 0.0
                await child.look_at_family()
            if turn.interrupted:
                stopping += _LOOK
                if stopping >= self._limits.interrupt:
                    await self.end()
                continue
            if self._requests:
                continue
            silent = silent + _LOOK if heard == self._heard else 0.0
            heard = self._heard
            if silent >= self._limits.silence:
                silent = 0.0
                note = f"no sign of life for {self._limits.silence:.0f} s"
                turn.sink(TurnEvent(TurnEventKind.STATUS, note))
            used += _LOOK
            if limit is not None and used >= limit:
                timed_out = True
                await self.interrupt()

    async def _stop(self, turn: stream.Turn) -> None:
        """The caller was cancelled: end the turn, or else the child."""
        await self.interrupt()
        if not turn.submitted:
            return
        try:
            await asyncio.wait_for(self._ended.wait(), self._limits.interrupt)
        except TimeoutError:
            await self.end()

    async def _settle(self, turn: stream.Turn) -> None:
        """The record may be written a moment after the result."""
        for _ in range(round(self._limits.receipt / 0.02)):
            self._prove(turn)
            if turn.received or turn.raw:
                return
            await asyncio.sleep(0.02)

    def _look_up(self, turn: stream.Turn) -> tuple[bool, str | None]:
        """Whether the transcript has the message (True in doubt), and its answer."""
        self._prove(turn)
        path = transcript.transcript_path(self.home, self.cwd, self.backend_id)
        if not path.exists():
            return turn.started, None
        try:
            found = transcript.read_transcript(path)
        except OSError:
            return True, None
        index = transcript.find_turn(found.records, turn.uuid)
        if index is None:
            # The record is written up to 0.1 s after the request was sent (measured).
            return found.damaged or turn.raw or turn.started, None
        turn.received = turn.raw or transcript.content(found.records[index]) == turn.text
        return True, transcript.reply_of(found.records, index)

    def _forget_requests(self) -> None:
        if self._requests:
            self._requests.clear()
            self._tell()

    def _tell(self) -> None:
        self._changed(self.ref, self.questions)

    def _start_idling(self) -> None:
        self._stop_idling()
        if self._child is not None:
            self._idle = asyncio.create_task(self._sleep_when_idle())

    def _stop_idling(self) -> None:
        if self._idle is not None and self._idle is not asyncio.current_task():
            self._idle.cancel()
        self._idle = None

    async def _sleep_when_idle(self) -> None:
        while True:
            await self._clock.sleep(self._settings.sleep_after_s)
            if self._turn is not None:
                return
            if not self._background and not self._requests:
                break
        await self.end()
