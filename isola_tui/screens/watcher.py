"""Keeps the board up to date with the store, whatever process changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from isola_core.model import DecisionState
from isola_core.store import decisions
from isola_tui.board import KEPT, Board
from isola_tui.history import Stretch

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

MANY: Final = 200
"""More changes than this are read as a whole."""


UNSETTLED: Final = 500
"""The most open decisions that are looked at when the program starts."""


class Watcher:
    """Reads only what changed. `changed(projects)` is called after every change of the board."""

    def __init__(
        self, runtime: Runtime, conversation: str, board: Board, changed: Callable[[bool], None]
    ) -> None:
        self._runtime = runtime
        self._conversation = conversation
        self._board = board
        self._changed = changed
        self._seen = 0
        self.stretches: list[Stretch] = []
        """What else is shown and must be kept up to date."""

    async def load(self) -> None:
        """Read the newest decisions and all projects."""
        self._seen = await self._runtime.store.last_change()
        await self._load_projects()
        await self._load_unsettled()
        self._board.put(await self._runtime.service.latest(KEPT))

    async def follow(self) -> None:
        """Follow the change sequence for ever."""
        store = self._runtime.store
        while True:
            await store.wait_for_change(self._seen)
            changes = await store.changes_since(self._seen)
            if changes:
                await self._take_in(changes)
                self._seen = changes[-1][0]
            else:
                self._seen = await store.last_change()

    async def _take_in(self, changes: Sequence[tuple[int, str, str]]) -> None:
        kinds = {kind for _, kind, _ in changes}
        projects = "project" in kinds
        if projects:
            await self._load_projects()
        elif kinds & {"decision", "judge"}:
            await self._runtime.service.refresh(self._conversation)
        if "decision" in kinds:
            fell_behind = changes[0][0] > self._seen + 1 or len(changes) > MANY
            ids = list(dict.fromkeys(each for _, kind, each in changes if kind == "decision"))
            await self._load_decisions(ids, whole=fell_behind)
        if projects or "decision" in kinds:
            self._changed(projects)

    async def _load_projects(self) -> None:
        await self._runtime.service.refresh(self._conversation)
        found = await self._runtime.projects.all(retired=True)
        self._board.projects = {each.id: each for each in found}

    async def _load_decisions(self, ids: list[str], *, whole: bool) -> None:
        board, owner = self._board, self._runtime.core.owner.id
        for stretch in list(self.stretches):
            await stretch.take_in(ids, whole=whole)
        if whole:
            await self._load_unsettled()
            board.replace(await self._runtime.service.latest(KEPT))
            return
        views = await self._runtime.store.read(lambda tx: decisions.decision_views(tx, owner, ids))
        if board.decisions.keys() >= set(ids):
            board.put(views)
            return
        # a new one, or an old one that is not shown: only the store knows their order
        board.replace(await self._runtime.service.latest(KEPT))
        for view in views:
            board.keep(view)

    async def _load_unsettled(self) -> None:
        """Read what waits for the person or for its session, however old it is."""
        open_states = (DecisionState.WAITING_CONFIRMATION, DecisionState.TENTATIVE)
        views = await self._runtime.service.latest(UNSETTLED, states=open_states)
        self._board.unsettled.clear()
        for view in views:
            self._board.keep(view)
