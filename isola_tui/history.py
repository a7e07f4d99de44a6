"""A stretch of the history that one view shows: it grows towards older and newer ends by pages.

However long the history is, at most `most` decisions are held; what leaves at one end is read
again when the person goes back there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from isola_core.model import DecisionView, Target
from isola_core.store import history
from isola_core.store.decisions import decision_views
from isola_core.store.history import Moves

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime


class Stretch:
    """Decisions in time order. `target` leaves only one project's lane; `page` is what one step
    reads, `most` what is held."""

    def __init__(
        self, runtime: Runtime, target: Target | None = None, *, page: int = 40, most: int = 160
    ) -> None:
        self.target = target
        self.decisions: dict[str, DecisionView] = {}
        self.moves = Moves()
        self.older = False
        """Whether the store may have older ones."""
        self.newer = False
        """Whether the store has newer ones, that is, whether the end is out of sight."""
        self._runtime = runtime
        self._page = page
        self._most = most
        self._reading = asyncio.Lock()

    async def newest(self) -> None:
        """Read the end of the history."""
        async with self._reading:
            found = await self._read(self._page)
            await self._hold(found)
            self.older, self.newer = len(found) == self._page, False

    async def around(self, decision: str) -> None:
        """Read what lies around one decision."""
        async with self._reading:
            half = self._page // 2
            before = await self._read(half, before=decision)
            after = await self._read(half, after=decision)
            await self._hold([*before, *await self._views([decision]), *after])
            self.older, self.newer = len(before) == half, len(after) == half

    async def earlier(self) -> bool:
        """Read a page of older ones; False where there are none."""
        async with self._reading:
            if not self.older or not self.decisions:
                return False
            found = await self._read(self._page, before=next(iter(self.decisions)))
            held = [*found, *self.decisions.values()]
            await self._hold(held[: self._most])
            self.older = len(found) == self._page
            self.newer = self.newer or len(held) > self._most
            return bool(found)

    async def later(self) -> bool:
        """Read a page of newer ones; False where there are none."""
        async with self._reading:
            if not self.newer or not self.decisions:
                return False
            found = await self._read(self._page, after=next(reversed(self.decisions)))
            held = [*self.decisions.values(), *found]
            await self._hold(held[-self._most :])
            self.newer = len(found) == self._page
            self.older = self.older or len(held) > self._most
            return bool(found)

    async def take_in(self, ids: Sequence[str], *, whole: bool = False) -> None:
        """These decisions have changed or are new; `whole`: so may others have."""
        async with self._reading:
            known = list(self.decisions)
            changed = known if whole else [each for each in ids if each in self.decisions]
            if changed:
                self.decisions |= {each.id: each for each in await self._views(changed)}
            if not self.newer and (whole or len(changed) < len(ids)):
                await self._append_new()
            if changed:
                await self._find_moves()

    async def _append_new(self) -> None:
        last = next(reversed(self.decisions), None)
        found = await self._read(self._page, after=last)
        if not found:
            return
        fell_behind = last is not None and len(found) == self._page
        held = await self._read(self._page) if fell_behind else [*self.decisions.values(), *found]
        await self._hold(held[-self._most :])
        self.older = self.older or fell_behind or len(held) > self._most

    async def _hold(self, views: Iterable[DecisionView]) -> None:
        self.decisions = {each.id: each for each in views}
        await self._find_moves()

    async def _find_moves(self) -> None:
        ids, owner = list(self.decisions), self._runtime.core.owner.id
        self.moves = await self._runtime.store.read(lambda tx: history.moves(tx, owner, ids))

    async def _read(
        self, limit: int, *, before: str | None = None, after: str | None = None
    ) -> list[DecisionView]:
        owner, target = self._runtime.core.owner.id, self.target
        return await self._runtime.store.read(
            lambda tx: history.page(tx, owner, limit, target=target, before=before, after=after)
        )

    async def _views(self, ids: Sequence[str]) -> list[DecisionView]:
        owner = self._runtime.core.owner.id
        return await self._runtime.store.read(lambda tx: decision_views(tx, owner, ids))
