"""Does a harness keep the contract? The suite that every built-in passes, for plugins' authors too.

    from isola_harnesses import conformance

    async def test_my_harness() -> None:
        subject = conformance.Subject(create=lambda services: my_plugin.create({}, services))
        conformance.require(await conformance.check(subject))

A `Subject` may also say how the backend can be watched and upset; what it does not say is skipped,
and a skipped promise is reported as such. Every check gets a new harness, its own folders and a
`Host`, which plays the store and the dispatcher: it keeps the finished turns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from isola_core.clock import SystemClock
from isola_core.ports import (
    Clock,
    Harness,
    Outgoing,
    PastTurn,
    QuotedContext,
    SessionRef,
    TurnResult,
)
from isola_harnesses.registry import HarnessServices


class MemoryHistory:
    """A `History` in memory, as the store would keep it."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, int], list[PastTurn]] = {}

    async def turns(self, session: SessionRef) -> Sequence[PastTurn]:
        """The session's turns in this generation, oldest first."""
        return tuple(self._turns.get((session.id, session.generation), ()))

    def add(self, session: SessionRef, turn: PastTurn) -> None:
        """Keep a finished turn."""
        self._turns.setdefault((session.id, session.generation), []).append(turn)

    def excise(self, delivery: str) -> None:
        """Take a turn out for good, as a correction does."""
        for turns in self._turns.values():
            turns[:] = [each for each in turns if each.delivery != delivery]


@dataclass(frozen=True, slots=True)
class Subject:
    """The harness under test and what can be asked of its backend.

    `create` makes it. `seen` returns, for every dispatch that reached the backend (of all sessions,
    oldest first), the whole text that the backend had before it. `failing` is a message at which
    the backend fails; `slow` one that it works on for at least ten seconds. `env` is the
    environment that the harness gets.
    """

    create: Callable[[HarnessServices], Harness]
    seen: Callable[[], Sequence[str]] | None = None
    failing: str | None = None
    slow: str | None = None
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Skipped(Exception):
    """A check that this subject cannot answer."""


class Host:
    """Plays the program around one harness: sessions, deliveries, history."""

    def __init__(self, subject: Subject, folder: Path, clock: Clock | None = None) -> None:
        self.subject = subject
        self.history = MemoryHistory()
        self._folder = folder
        self._clock = clock or SystemClock()
        self._sent = 0
        state = folder / "state"
        state.mkdir()
        services = HarnessServices(self.history, self._clock, subject.env, state)
        self.harness = subject.create(services)

    def session(self, project: str) -> SessionRef:
        """A session of a project in a folder of its own; the same project gives the same one."""
        folder = self._folder / project
        folder.mkdir(exist_ok=True)
        return SessionRef(
            id=f"s-{project}",
            project=project,
            key=f"proj:{project}",
            generation=0,
            cwd=folder.resolve(),
        )

    def message(self, text: str, context: QuotedContext | None = None) -> Outgoing:
        """A new delivery of a text."""
        self._sent += 1
        number = f"{self._sent:04}"
        return Outgoing(f"d-{number}", f"m-{number}", text, context or QuotedContext())

    async def send(
        self, session: SessionRef, text: str, context: QuotedContext | None = None
    ) -> tuple[SessionRef, TurnResult]:
        """Dispatch a text; returns the reference to use from now on, and the result."""
        message = self.message(text, context)
        started = self._clock.now()
        result = await self.harness.dispatch(session, message)
        return self.keep(session, message, result, started), result

    def keep(
        self, session: SessionRef, message: Outgoing, result: TurnResult, started: int = 0
    ) -> SessionRef:
        """Store a turn's end as the program does: only a good one becomes history."""
        if result.ok:
            turn = PastTurn(message.delivery, message.text, result.reply, started)
            self.history.add(session, turn)
        if result.backend_id is not None:
            return replace(session, backend_id=result.backend_id)
        return session

    def seen(self) -> Sequence[str]:
        """What the backend was given; skips the check where that cannot be known."""
        if self.subject.seen is None:
            raise Skipped("the subject does not say what its backend saw")
        return self.subject.seen()


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """One promise of the contract: kept, broken (`detail` says how), or skipped."""

    name: str
    promise: str
    passed: bool
    skipped: bool = False
    detail: str = ""


Check = Callable[[Host], Awaitable[None]]

_CHECKS: Final[dict[str, Check]] = {}


def checks() -> Mapping[str, Check]:
    """The checks by name; each one's docstring is its promise."""
    if not _CHECKS:
        from isola_harnesses import conformance_checks

        _CHECKS.update((each.__name__, each) for each in conformance_checks.ALL)
    return _CHECKS


async def run(name: str, subject: Subject) -> ConformanceResult:
    """One check, with a new harness that is closed afterwards."""
    check_one = checks()[name]
    promise = (check_one.__doc__ or name).strip()
    with tempfile.TemporaryDirectory(prefix="isola-conformance-") as folder:
        host = Host(subject, Path(folder))
        try:
            await check_one(host)
        except Skipped as reason:
            return ConformanceResult(name, promise, passed=True, skipped=True, detail=str(reason))
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            return ConformanceResult(name, promise, passed=False, detail=detail)
        finally:
            await host.harness.close()
    return ConformanceResult(name, promise, passed=True)


async def check(subject: Subject) -> list[ConformanceResult]:
    """All checks, one after the other."""
    return [await run(name, subject) for name in checks()]


def require(results: Iterable[ConformanceResult]) -> None:
    """Raise `AssertionError` that lists every broken promise."""
    broken = [f"{each.name}: {each.promise} ({each.detail})" for each in results if not each.passed]
    if broken:
        raise AssertionError("The harness contract is broken.\n" + "\n".join(broken))
