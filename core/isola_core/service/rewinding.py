"""Taking misrouted turns out of a session, as stored tasks that survive a crash.

A harness that can forget one turn does; one that cannot, or that keeps failing, gets a fresh
session with a briefing instead: the wrong text must not stay, whatever it costs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isola_core.model import RewindState
from isola_core.ports import Harness, PastTurn, Rebuilds, Recounts, Rewinds, SessionRef, TurnRef
from isola_core.secrets import mask
from isola_core.service.settings import Core
from isola_core.store import deliveries, memories, sessions
from isola_core.store.deliveries import Rewind
from isola_core.store.sessions import StoredSession
from isola_core.store.transaction import Transaction

LOG = logging.getLogger("isola.rewinding")

ATTEMPTS: Final = 3
"""After so many failures a fresh session takes over."""

KEPT_FILES: Final = 100
"""Files that a note names; what a turn changed beyond that is counted."""

BRIEFING_TURNS: Final = 12
BRIEFING_CHARACTERS: Final = 6_000
BRIEFING_TEXT: Final = 600
"""Characters of one text in a briefing."""


class PendingRewinds:
    """The pending rewinds of one session. `check_fence` raises where the lease is not ours."""

    def __init__(
        self, core: Core, session: str, check_fence: Callable[[Transaction], None]
    ) -> None:
        self.done = 0
        self._core = core
        self._session = session
        self._check_fence = check_fence

    async def do_all(self, harness: Harness, ref: SessionRef) -> SessionRef:
        """Forget everything that is pending; the reference to use from now on."""
        pending = await self._core.store.read(
            lambda tx: deliveries.pending_rewinds(tx, self._session)
        )
        for rewind in pending:
            ref = await self._rewind(harness, ref, rewind)
        return ref

    async def _rewind(self, harness: Harness, ref: SessionRef, rewind: Rewind) -> SessionRef:
        quoted = not isinstance(harness, Rebuilds) and await self._is_quoted(rewind, ref)
        if quoted:
            return await self._replace(harness, ref, rewind, "later turns had been told of it")
        if not rewind.held:
            note = "nothing of what it was told of it is kept"
            return await self._rewound(rewind, RewindState.DONE, note, ref, ref)
        if rewind.generation is not None and rewind.generation != ref.generation:
            note = "its session had been reset since"
            return await self._rewound(rewind, RewindState.DONE, note, ref, ref)
        turn = await self._turn(rewind)
        able = isinstance(harness, Rewinds)
        why = "taking the turn out failed" if able else "this backend cannot forget one turn alone"
        while isinstance(harness, Rewinds) and rewind.attempts < ATTEMPTS:
            try:
                done = await harness.rewind(ref, turn)
            except Exception as error:
                why = f"the turn could not be taken out alone ({type(error).__name__}: {error})"
                words = f"not forgotten yet: {type(error).__name__}: {error}"
                LOG.warning("rewind %s failed: %s", rewind.id, type(error).__name__)
                await self._count(rewind, mask(words))
                rewind = replace(rewind, attempts=rewind.attempts + 1)
                continue
            note = done.note or "the turn was taken out of the session"
            if done.kept_changes:
                note = f"{note.rstrip('.')}. {_kept(done.kept_changes)}"
            state = RewindState.REPLACED if done.replaced else RewindState.DONE
            return await self._rewound(rewind, state, note, ref, done.session)
        return await self._replace(harness, ref, rewind, why)

    async def _replace(
        self, harness: Harness, ref: SessionRef, rewind: Rewind, why: str
    ) -> SessionRef:
        note = f"a fresh session took over: {why}"
        if isinstance(harness, Recounts) and rewind.held and rewind.generation == ref.generation:
            turn = await self._turn(rewind)
            try:
                left = await harness.effects(ref, turn)
            except Exception:
                LOG.exception("what rewind %s leaves cannot be told", rewind.id)
            else:
                told = [note, _kept(left.files) if left.files else "", left.note]
                note = ". ".join(each.rstrip(".") for each in told if each)
        fresh = await harness.reset_session(ref)
        return await self._rewound(rewind, RewindState.REPLACED, note, ref, fresh)

    async def _is_quoted(self, rewind: Rewind, ref: SessionRef) -> bool:
        """Whether the session was told of it besides: by a memory of it, or in a briefing."""

        def look(tx: Transaction) -> bool:
            ids = {rewind.decision, *memories.retired_by_source(tx, rewind.decision)}
            return deliveries.is_quoted(tx, self._session, ref.generation, ids)

        return await self._core.store.read(look)

    async def _turn(self, rewind: Rewind) -> TurnRef:
        """The turn, its text as it was sent, also where only a masked copy is stored."""
        delivery = await self._core.store.read(
            lambda tx: deliveries.delivery_by_id(tx, rewind.delivery)
        )
        text = self._core.vault.text_of(delivery.message) or rewind.text
        return TurnRef(rewind.delivery, rewind.turn_id, text, rewind.context)

    async def _count(self, rewind: Rewind, words: str) -> None:
        await self._core.store.write(lambda tx: deliveries.count_rewind_attempt(tx, rewind, words))

    async def _rewound(
        self, rewind: Rewind, state: RewindState, note: str, old: SessionRef, new: SessionRef
    ) -> SessionRef:
        def work(tx: Transaction) -> None:
            self._check_fence(tx)
            if state is RewindState.REPLACED:
                waiting = sessions.session(tx, self._session).briefing
                briefing = _briefing(tx, self._session, old.generation, briefed=bool(waiting))
                sessions.update_session(tx, new, briefing=briefing.text)
            elif new != old:
                sessions.update_session(tx, new)
            deliveries.move_rewind(tx, rewind, state, mask(note))

        await self._core.store.write(work)
        self.done += 1
        return new


def _kept(files: Sequence[str]) -> str:
    more = f" and {len(files) - KEPT_FILES} more" if len(files) > KEPT_FILES else ""
    return f"Files that it changed stay changed: {', '.join(files[:KEPT_FILES])}{more}."


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a fresh session must know, and the decisions whose words it holds."""

    text: str = ""
    decisions: tuple[str, ...] = ()


def waiting_briefing(tx: Transaction, stored: StoredSession) -> Briefing:
    """What the session must still be told, made anew: what was taken back since is not in it."""
    if not stored.briefing:
        return Briefing()
    return _briefing(tx, stored.ref.id, stored.ref.generation - 1, briefed=None)


def _briefing(tx: Transaction, session: str, generation: int, *, briefed: bool | None) -> Briefing:
    """The last turns of an ended generation that may stay, shortened.

    Where it had begun with a briefing itself, what went before it counts too. `briefed` says that
    it had one that was still waiting; None: it had, if nothing was ever said in it.
    """
    turns: list[PastTurn] = []
    while generation >= 0 and len(turns) < BRIEFING_TURNS:
        turns = [*deliveries.past_turns(tx, session, generation), *turns]
        told = deliveries.was_briefed(tx, session, generation)
        if not (briefed or told or (told is None and briefed is None)):
            break
        briefed = None
        generation -= 1
    kept = turns[-BRIEFING_TURNS:]
    lines: list[str] = []
    for turn in kept:
        lines.append(f"User: {turn.sent[:BRIEFING_TEXT]}")
        lines.append(f"Agent: {turn.reply[:BRIEFING_TEXT]}")
    text = "\n".join(lines)[-BRIEFING_CHARACTERS:]
    return Briefing(text, tuple(turn.decision for turn in kept))
