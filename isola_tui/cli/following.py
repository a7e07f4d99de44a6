"""Follows decisions to the end of their deliveries, doing this process's share of the work.

Only the sessions of these decisions are driven: what waits in the outbox for a running program
stays there. Where another process drives a session already, its progress is watched instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from isola_core.model import DecisionState, DecisionView, DeliveryState, RewindState
from isola_tui.runtime import Runtime

LOG = logging.getLogger("isola.following")

LOOK_S: Final = 2.0
"""The longest time without a look at the store."""

REWIND_S: Final = 10.0
"""How long the answer to a correction waits for the wrong session to forget; it is stored work."""

_ENDED: Final = frozenset(
    {
        DeliveryState.ANSWERED,
        DeliveryState.FAILED,
        DeliveryState.CANCELLED,
        DeliveryState.UNKNOWN,
    }
)


class Follower:
    """Drives and watches the sessions of one command's decisions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._sessions: set[str] = set()

    async def work(self) -> None:
        """Drive the followed sessions until cancelled."""
        while True:
            try:
                await self._runtime.dispatcher.run(self._sessions)
            except Exception:
                LOG.exception("sending failed; it is tried again")
                await asyncio.sleep(1)

    async def ended(
        self, decisions: Sequence[str], timeout_s: float | None = None
    ) -> list[DecisionView]:
        """These decisions once their deliveries have ended, or as they are after `timeout_s`.

        The end of the wait changes nothing in the store: what is not done goes on when a program
        runs again.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._until(decisions, self.has_ended)
        return await self.now(decisions)

    async def forgotten(self, decisions: Sequence[str]) -> list[DecisionView]:
        """Decisions that were taken back, once their sessions forgot them or a while has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REWIND_S):
                await self._until(decisions, _is_forgotten)
        return await self.now(decisions)

    async def _until(self, decisions: Sequence[str], done: Callable[[DecisionView], bool]) -> None:
        store = self._runtime.store
        seen = -1
        while True:
            views = await self.now(decisions)
            if all(done(each) for each in views):
                return
            sessions = {each.session for each in views if each.session is not None}
            if not sessions <= self._sessions:
                self._sessions |= sessions
                await self._runtime.dispatcher.pump(self._sessions)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    seen = await store.wait_for_change(seen)

    async def now(self, decisions: Sequence[str]) -> list[DecisionView]:
        """These decisions as they are."""
        return [await self._runtime.service.decision(each) for each in decisions]

    def has_ended(self, view: DecisionView) -> bool:
        """Whether nothing more will happen to this decision's message by itself."""
        if view.state is not DecisionState.TENTATIVE:
            return True
        if view.delivery is DeliveryState.UNKNOWN and view.session is not None:
            # the backend's own record may still prove what happened
            return not self._runtime.dispatcher.driving(view.session)
        return view.delivery in _ENDED


def _is_forgotten(view: DecisionView) -> bool:
    return view.rewind is not RewindState.PENDING
