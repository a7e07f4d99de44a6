"""The dispatcher: takes messages out of the outbox and drives each session, one turn at a time.

A session has one driver in the world, the holder of its lease. What a driver does to a delivery it
does under its fencing token, so that a process that was thought dead can change nothing any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container
from typing import Final

from isola_core.errors import NotFound
from isola_core.ports import (
    Asks,
    Harness,
    Holds,
    Interrupts,
    Processes,
    Question,
    SessionRef,
)
from isola_core.service.driver import Driver
from isola_core.service.live import Live
from isola_core.service.proof import recover
from isola_core.service.settings import Core
from isola_core.store import sessions
from isola_core.store.sessions import Lease, StoredSession
from isola_core.store.transaction import Transaction

LOG = logging.getLogger("isola.dispatcher")

HEARTBEAT_S: Final = 5.0
STALE_LEASE_MS: Final = 30_000
"""A lease of a machine we cannot look into counts as abandoned after this long without a beat."""

RECHECK_S: Final = 5.0
"""How often the outbox is looked at although nothing changed: a driver may have died silently.

A session whose driver failed is left alone for as long.
"""


def is_driven(tx: Transaction, lease: Lease | None, processes: Processes) -> bool:
    """Whether the holder of this lease may still be at work: nobody else may take it then."""
    if lease is None or lease.released:
        return False
    alive = processes.alive(lease.holder)
    return bool(alive) or (alive is None and tx.now - lease.heartbeat < STALE_LEASE_MS)


class Dispatcher:
    """Drives every session of this machine whose lease it can get."""

    def __init__(self, core: Core, harness: Callable[[str], Harness], processes: Processes) -> None:
        self.core = core
        self.live = Live()
        self._harness = harness
        self._processes = processes
        self._fences: dict[str, int] = {}
        self._unreleased: dict[str, int] = {}
        """Leases that we could not give back, since the store refused; nobody drives these."""
        self._drivers: dict[str, asyncio.Task[bool]] = {}
        self._running: dict[str, Driver] = {}
        self._listening: set[int] = set()
        self._closed = False
        self._stuck: dict[str, tuple[str, float]] = {}
        """session -> (mark of its work, time) where a drive did not get anywhere"""

    async def run(self, only: Container[str] | None = None) -> None:
        """Work until cancelled, on the sessions of `only` where it is given."""
        beats = asyncio.create_task(self._beat())
        seen = -1
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RECHECK_S):
                        seen = await self.core.store.wait_for_change(seen)
                await self.pump(only)
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)

    async def pump(self, only: Container[str] | None = None, without: Container[str] = ()) -> None:
        """Start driving every session (of `only`) that has work; pass interrupts on."""
        for driver in list(self._running.values()):
            await driver.check_interrupt()
        owner, machine = self.core.owner.id, self.core.machine
        waiting = await self.core.store.read(
            lambda tx: sessions.sessions_with_work(tx, owner, machine)
        )
        for session, work in waiting.items():
            if (only is not None and session not in only) or session in without:
                continue
            if self._closed or self.driving(session) or self._is_stuck(session, work):
                continue
            self._drivers[session] = asyncio.create_task(self._drive(session, work))

    def _is_stuck(self, session: str, work: str) -> bool:
        tried, at = self._stuck.get(session, ("", 0.0))
        return tried == work and asyncio.get_running_loop().time() < at + RECHECK_S

    async def settle(self) -> None:
        """Work until no session has anything left that this process may do."""
        elsewhere: set[str] = set()
        while True:
            await self.pump(without=elsewhere)
            running = {name: task for name, task in self._drivers.items() if not task.done()}
            if not running:
                return
            await asyncio.wait(running.values(), timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
            elsewhere |= {
                name
                for name, task in running.items()
                if task.done() and not task.cancelled() and not task.result()
            }

    def driving(self, session: str) -> bool:
        """Whether this process is working on the session right now."""
        task = self._drivers.get(session)
        return task is not None and not task.done()

    async def finish(self) -> None:
        """Take nothing more out of the outbox and wait for the end of the turns that run."""
        self._closed = True
        for driver in self._running.values():
            driver.finishing = True
        while running := [task for task in self._drivers.values() if not task.done()]:
            await self.pump()
            await asyncio.wait(running, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)

    async def _drive(self, session: str, work: str) -> bool:
        """Do what waits in a session. False: another process drives it."""
        stored = await self.core.store.read(lambda tx: sessions.session(tx, session))
        fence = await self._lease(session)
        if fence is None:
            return False
        if self._closed:
            await self._release(session)
            return True
        harness, broken = None, ""
        try:
            harness = self._harness(stored.harness)
            self._listen(harness)
        except Exception as error:
            broken = str(error)
        label = stored.harness
        driver = Driver(self.core, harness, session, fence, self.live, broken, label)
        self._running[session] = driver
        try:
            await driver.drain()
        except Exception:
            driver.progressed = False
            LOG.exception("driving session %s failed", session)
        finally:
            if not driver.progressed:
                self._stuck[session] = (work, asyncio.get_running_loop().time())
            self._running.pop(session, None)
            await self._release_if_idle(session, harness)
        return True

    def _listen(self, harness: Harness) -> None:
        if not isinstance(harness, Asks) or id(harness) in self._listening:
            return
        self._listening.add(id(harness))

        def heard(session: SessionRef, questions: tuple[Question, ...]) -> None:
            if questions:
                self.live.questions[session.id] = questions
                self.live.sessions[session.id] = session
            else:
                self.live.questions.pop(session.id, None)
            self.live.changed()

        harness.set_listener(heard)

    async def answer(self, session: str, question: str, choice: str, text: str = "") -> None:
        """Answer an agent's question.

        Raises:
            NotFound: it is not open any more.
        """
        ref = self.live.sessions.get(session)
        stored = await self.core.store.read(lambda tx: sessions.session(tx, session))
        harness = self._harness(stored.harness)
        if ref is None or not isinstance(harness, Asks):
            raise NotFound("this question is not open any more")
        await harness.answer(ref, question, choice, text)

    async def _lease(self, session: str) -> int | None:
        """Our fencing token for the session, None while somebody else drives it."""
        me = self._processes.me()

        def work(tx: Transaction) -> int | None:
            lease = sessions.lease(tx, session)
            ours = self._fences.get(session)
            if lease is not None and not lease.released:
                if ours is not None and lease.fence == ours and lease.holder == me:
                    return ours
                left = lease.holder == me and lease.fence == self._unreleased.get(session)
                if not left and is_driven(tx, lease, self._processes):
                    return None
            fence = sessions.take_lease(tx, session, me)
            recover(tx, self.core, session)
            return fence

        fence = await self.core.store.write(work)
        if fence is None:
            self._fences.pop(session, None)
        else:
            self._fences[session] = fence
        return fence

    async def _release_if_idle(self, session: str, harness: Harness | None) -> None:
        stored = await self.core.store.read(lambda tx: sessions.session(tx, session))
        if isinstance(harness, Holds) and harness.holds(stored.ref) and not self._closed:
            return
        await self._release(session)

    async def _release(self, session: str) -> None:
        fence = self._fences.pop(session, None)
        if fence is not None:
            self._unreleased[session] = fence
            await self.core.store.write(lambda tx: sessions.release_lease(tx, session, fence))
            self._unreleased.pop(session, None)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            held = dict(self._fences)
            if not held:
                continue

            def work(tx: Transaction, held: dict[str, int] = held) -> list[str]:
                return [each for each, fence in held.items() if not sessions.beat(tx, each, fence)]

            try:
                for lost in await self.core.store.write(work):
                    LOG.warning("the lease of session %s went to another process", lost)
                    self._fences.pop(lost, None)
                    if (task := self._drivers.get(lost)) is not None:
                        task.cancel()
                await self._release_idle(held)
            except Exception:
                LOG.exception("the heartbeat failed; it is tried again")

    async def _release_idle(self, held: dict[str, int]) -> None:
        for session in held:
            task = self._drivers.get(session)
            if task is None or task.done():
                stored: StoredSession = await self.core.store.read(
                    lambda tx, session=session: sessions.session(tx, session)  # type: ignore[misc]
                )
                with contextlib.suppress(Exception):
                    await self._release_if_idle(session, self._harness(stored.harness))

    async def stop(self, session: str) -> None:
        """Ask the session's running turn to end, at once."""
        driver = self._running.get(session)
        if driver is not None and isinstance(driver.harness, Interrupts):
            await driver.harness.interrupt(driver.ref)

    async def close(self) -> None:
        """End running turns (their deliveries stay to be recovered) and give the leases back."""
        self._closed = True
        tasks = [task for task in self._drivers.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in list(self._fences):
            with contextlib.suppress(Exception):
                await self._release(session)
