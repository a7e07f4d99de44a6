"""Opens the program for one command: a runtime whose event loop has a thread of its own.

The main thread prompts, prints and hears signals, while turns, ticks and heartbeats go on beside
it. Ctrl-C in a wait ends the wait and nothing else. Whatever happens, the runtime is closed before
the command ends, since an open database connection would keep the interpreter alive.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from types import FrameType
from typing import Any, Final, TypeVar

from isola_core.attribution.addressing import LANE
from isola_core.errors import NotFound
from isola_core.model import DecisionView, Project, Target
from isola_tui.cli.following import Follower
from isola_tui.cli.invocation import EXIT_INTERRUPTED, Invocation
from isola_tui.cli.outcome import Status, exit_code
from isola_tui.cli.output import Names, line, note
from isola_tui.cli.questions import OnQuestion, Questions
from isola_tui.runtime import Runtime, open_runtime

T = TypeVar("T")

_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class _Call:
    """One coroutine on the loop's thread, waited for from the main thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any],
        ended: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._work = work
        self._ended = threading.Event()
        self._tell = ended
        self._task: asyncio.Task[Any]

    @property
    def ended(self) -> bool:
        """Whether the coroutine has returned or raised."""
        return self._ended.is_set()

    def run(self, meanwhile: Callable[[], None] | None = None) -> Any:
        """The coroutine's result; Ctrl-C cancels it, waits for its end and is raised again.

        `meanwhile` is called over and over until the end; it waits by itself.
        """
        self._loop.call_soon_threadsafe(self._begin)
        try:
            while meanwhile is not None and not self.ended:
                meanwhile()
            self._ended.wait()
        except (KeyboardInterrupt, SystemExit):
            self._loop.call_soon_threadsafe(lambda: self._task.cancel())
            self._ended.wait()
            raise
        return self._task.result()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._ended.set()
        if self._tell is not None:
            self._tell()


class Program:
    """One open runtime, called from the main thread."""

    def __init__(
        self,
        runtime: Runtime,
        loop: asyncio.AbstractEventLoop,
        on_question: OnQuestion | None = None,
        *,
        as_json: bool = False,
    ) -> None:
        self.runtime = runtime
        self._loop = loop
        self.questions = Questions(runtime, self.call, on_question, as_json=as_json)
        self.follower = Follower(runtime)
        self.hurry = False
        """Set when nobody waits any more: running turns are left as they are."""
        self.interrupted = False
        """Whether Ctrl-C ended the last wait."""
        self._beside: list[asyncio.Task[None]] = []

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end. Ctrl-C cancels it and raises `KeyboardInterrupt`."""
        result: T = self.calling(work).run()
        return result

    def attend(self, work: Coroutine[Any, Any, T], *, patient: bool = True) -> T:
        """`call` for what waits for agents: what they ask meanwhile is answered.

        `patient`: the end of the work takes no question away that another turn still asks.
        """
        questions = self.questions
        call = _Call(self._loop, work, ended=questions.bell.ring)

        def meanwhile() -> None:
            questions.answer_all(lambda: call.ended and not patient)
            if not call.ended:
                questions.bell.wait()

        result: T = call.run(meanwhile)
        return result

    def calling(self, work: Coroutine[Any, Any, Any]) -> _Call:
        """A call that can be looked at after it was interrupted."""
        return _Call(self._loop, work)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run beside the command until the program is closed."""

        async def begin() -> None:
            self._beside.append(asyncio.get_running_loop().create_task(work))

        self.call(begin())

    def start_working(self) -> None:
        """Send what this command sends, and tick, until the program is closed."""
        if self._beside:
            return
        self.start(self.follower.work())
        self.start(self.runtime.tick_forever())

    def answers(
        self, decisions: Sequence[str], timeout_s: float | None = None
    ) -> list[DecisionView]:
        """These decisions once their deliveries ended, the time is over, or Ctrl-C was pressed."""
        self.start_working()
        self.interrupted = False
        try:
            ended = self.follower.ended(decisions, timeout_s)
            views = self.attend(ended, patient=timeout_s is None)
        except KeyboardInterrupt:
            self.interrupted = True
            views = self.call(self.follower.now(decisions))
        self.hurry = not all(self.follower.has_ended(each) for each in views)
        return views

    def forgotten(self, decision: str) -> DecisionView:
        """A decision that was taken back, once its session forgot it or a while has passed."""
        self.start_working()
        (view,) = self.attend(self.follower.forgotten([decision]))
        return view

    def code(self, statuses: Sequence[Status]) -> int:
        """The exit code for what `answers` brought."""
        return EXIT_INTERRUPTED if self.interrupted else exit_code(statuses)

    async def end(self) -> None:
        """End what `start` began."""
        for each in self._beside:
            each.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)

    def names(self) -> Names:
        """What every project is called."""
        return Names(self.call(self.runtime.projects.all(retired=True)))

    def target(self, named: str) -> Target:
        """The target that `PROJECT` or `PROJECT/LANE` names, by id, name or alias.

        Raises:
            NotFound, Ambiguous, Conflict: there is no such project, several, or it is retired.
        """
        return self.call(_target(self.runtime, named))

    def project(self, named: str, *, retired: bool = False) -> Project:
        """The project of this id, name or alias; raises as `target`."""
        return self.call(self.runtime.projects.find(named, retired=retired))


async def _target(runtime: Runtime, named: str) -> Target:
    name, slash, lane = named.rpartition("/")
    try:
        return Target((await runtime.projects.find(named)).id)
    except NotFound:
        lane = lane.lower()  # as in `@project/lane`: the same lane has one session
        if not slash or not LANE.fullmatch(lane):
            raise
    return Target((await runtime.projects.find(name)).id, lane)


@contextmanager
def opened(invocation: Invocation, on_question: OnQuestion | None = None) -> Iterator[Program]:
    """The program, open for one command; `on_question` as for `Questions`."""
    log = logging.getLogger("isola")
    if not log.handlers:
        log.addHandler(_Notes(logging.WARNING))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="isola-loop", daemon=True)
    thread.start()
    previous = {each: signal.signal(each, _end) for each in _ENDING_SIGNALS}
    opening = open_runtime(invocation.config)
    try:
        runtime = _Call(loop, opening.__aenter__()).run()
        program = Program(runtime, loop, on_question, as_json=invocation.json)
        try:
            yield program
        except BaseException:
            program.hurry = True
            raise
        finally:
            _close(program, opening)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for each, handler in previous.items():
            signal.signal(each, handler)


def _close(program: Program, opening: AbstractAsyncContextManager[Runtime]) -> None:
    """Let running turns end, unless in a hurry, and close everything.

    Ctrl-C ends the wait for the turns, a second one the process.
    """
    closing = program.calling(_closed(program, opening))
    try:
        if not program.hurry:
            program.attend(program.runtime.dispatcher.finish())
    finally:
        try:
            closing.run()
        except KeyboardInterrupt:
            if closing.ended:
                raise
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(EXIT_INTERRUPTED)


async def _closed(program: Program, opening: AbstractAsyncContextManager[Runtime]) -> None:
    try:
        program.questions.close()
        await program.end()
    finally:
        await opening.__aexit__(None, None, None)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Notes(logging.Handler):
    """What went wrong beside the command, as one line on stderr; never a traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        said = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said += f" ({type(error).__name__}: {error})"
        note(f"isola: {line(said, 500)}")
