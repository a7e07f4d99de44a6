"""What a person does with a session itself: start it afresh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isola_core.errors import Conflict, NotFound
from isola_core.model import DeliveryState, Target
from isola_core.ports import Harness, Processes, SessionRef
from isola_core.service.dispatcher import is_driven
from isola_core.service.outbox import active_project
from isola_core.service.proof import recover
from isola_core.service.settings import Core
from isola_core.store import deliveries, memories, sessions
from isola_core.store.sessions import StoredSession
from isola_core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Reset:
    """A session that was started afresh.

    `waiting` messages go to the fresh one; of `unknown` ones nobody can tell any more by its record
    whether they had arrived.
    """

    session: SessionRef
    harness: str
    waiting: int
    unknown: int


class SessionAdmin:
    """Use cases on sessions of this machine that no turn is running in."""

    def __init__(self, core: Core, harness: Callable[[str], Harness], processes: Processes) -> None:
        self._core = core
        self._harness = harness
        self._processes = processes

    async def reset(self, target: Target) -> Reset:
        """Give a project's session an empty history; the backend keeps the old one.

        Raises:
            NotFound: no such project, or nothing was ever sent to it from this machine.
            Conflict: the project is retired, or another process drives the session.
            HarnessError, ConfigError: the backend cannot do it; nothing was changed.
        """
        stored, fence = await self._core.store.write(lambda tx: self._take(tx, target))
        session = stored.ref.id
        try:
            fresh = await self._harness(stored.harness).reset_session(stored.ref)
            return await self._core.store.write(
                lambda tx: self._keep(tx, fresh, stored.harness, fence)
            )
        finally:
            await self._core.store.write(lambda tx: sessions.release_lease(tx, session, fence))

    def _take(self, tx: Transaction, target: Target) -> tuple[StoredSession, int]:
        core = self._core
        project = active_project(tx, core, target.project)
        stored = sessions.find_session(tx, core.owner.id, core.machine, project.id, target.lane)
        if stored is None:
            key = sessions.session_key(project.id, target.lane)
            raise NotFound(f"{key} has no session on this machine yet; there is nothing to reset")
        lease = sessions.lease(tx, stored.ref.id)
        if lease is not None and is_driven(tx, lease, self._processes):
            raise Conflict(
                f"{stored.ref.key} is driven by another process (pid {lease.holder.pid}); wait for "
                "its turn to end, or quit that program. Nothing was changed.",
                pid=lease.holder.pid,
            )
        fence = sessions.take_lease(tx, stored.ref.id, self._processes.me())
        recover(tx, core, stored.ref.id)
        return stored, fence

    def _keep(self, tx: Transaction, fresh: SessionRef, harness: str, fence: int) -> Reset:
        lease = sessions.lease(tx, fresh.id)
        if lease is None or lease.fence != fence or lease.released:
            raise Conflict(f"{fresh.key} went to another process meanwhile; nothing was changed")
        sessions.update_session(tx, fresh, briefing="")
        memories.audit(tx, self._core.owner.id, "user", "session.reset", fresh.id, "reset")
        states = [each.state for each in deliveries.open_deliveries(tx, fresh.id)]
        return Reset(
            fresh,
            harness,
            states.count(DeliveryState.PENDING),
            states.count(DeliveryState.UNKNOWN),
        )
