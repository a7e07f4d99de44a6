"""One session's driver: rewinds first, then the waiting deliveries, one at a time.

The order of the steps is the guarantee. A delivery is claimed (RUNNING), the session is made ready,
then WRITTEN is committed, and only then is the text handed over: whoever finds a WRITTEN row after
a crash knows that the text may have arrived, whoever finds RUNNING knows that it has not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from isola_core.errors import Conflict, HarnessError, IsolaError
from isola_core.memory.recall import recall
from isola_core.memory.scopes import project_read_set
from isola_core.model import (
    LIVE_DELIVERIES,
    DeliveryState,
)
from isola_core.ports import (
    Confirms,
    FailureKind,
    Harness,
    Interrupts,
    Outgoing,
    QuotedContext,
    SessionRef,
    SessionState,
    Streams,
    TurnEvent,
    TurnEventKind,
    TurnResult,
)
from isola_core.secrets import mask
from isola_core.service.live import Live
from isola_core.service.proof import settle_by_receipt
from isola_core.service.rewinding import PendingRewinds, waiting_briefing
from isola_core.service.settings import Core
from isola_core.store import decisions, deliveries, projects, sessions
from isola_core.store.deliveries import Delivery
from isola_core.store.transaction import Transaction

LOG = logging.getLogger("isola.driver")

REPLY_LIMIT: Final = 4_000_000
"""Characters of a reply that are stored."""

ERROR_LIMIT: Final = 2_000
META_LIMIT: Final = 20_000


class Driver:
    """Does the work of one session while its lease is ours."""

    def __init__(
        self,
        core: Core,
        harness: Harness | None,
        session: str,
        fence: int,
        live: Live,
        broken: str = "",
        label: str | None = None,
    ) -> None:
        self.core = core
        self.harness = harness
        self.label = label
        """The harness's name as the session stores it; another one there is another driver's."""
        self.session = session
        self.ref: SessionRef
        self.finishing = False
        """Set from outside: no further delivery is taken."""
        self.progressed = False
        """Whether anything was delivered, refused or rewound."""
        self._fence = fence
        self._live = live
        self._broken = broken
        self._current: Delivery | None = None
        self._turn: asyncio.Task[TurnResult] | None = None
        self._interrupted = False

    # -- the work

    async def drain(self) -> None:
        """Do everything that is waiting, then return."""
        stored = await self.core.store.read(lambda tx: sessions.session(tx, self.session))
        self.ref = stored.ref
        if self.label not in (None, stored.harness):
            self.progressed = True
            return
        if self.harness is None:
            await self._refuse_all()
            return
        await self._forget(self.harness)
        await self._confirm_unknown(self.harness)
        while True:
            await self._forget(self.harness)
            delivery = await self.core.store.write(self._claim)
            if delivery is None:
                return
            await self._deliver(self.harness, delivery)

    async def _forget(self, harness: Harness) -> None:
        """Let the session forget what was taken back, before anything else is delivered to it."""
        rewinds = PendingRewinds(self.core, self.session, self._check_fence)
        try:
            self.ref = await rewinds.do_all(harness, self.ref)
        finally:
            self.progressed |= rewinds.done > 0

    def _claim(self, tx: Transaction) -> Delivery | None:
        self._check_fence(tx)
        if self.finishing or deliveries.pending_rewinds(tx, self.session):
            return None
        stored = sessions.session(tx, self.session)
        if self.label not in (None, stored.harness):
            self.progressed = True
            return None
        self.ref = stored.ref  # the project may have moved meanwhile
        for delivery in deliveries.open_deliveries(tx, self.session):
            if delivery.state in LIVE_DELIVERIES:
                return None
            if delivery.state is DeliveryState.PENDING:
                self.progressed = True
                deliveries.move_delivery(tx, delivery, DeliveryState.RUNNING, fence=self._fence)
                return deliveries.delivery_by_id(tx, delivery.id)
        return None

    def _check_fence(self, tx: Transaction) -> None:
        lease = sessions.lease(tx, self.session)
        if lease is None or lease.fence != self._fence or lease.released:
            raise Conflict(f"session {self.session} is driven by another process")

    async def _refuse_all(self) -> None:
        while delivery := await self.core.store.write(self._claim):
            await self._fail(delivery, self._broken, FailureKind.UNREACHABLE)

    async def _deliver(self, harness: Harness, delivery: Delivery) -> None:
        self._current = delivery
        self._interrupted = False
        try:
            text = self._full_text(delivery)
            if text is None:
                error = "it was sent unstored and its text is gone; send it again"
                await self._fail(delivery, error, None)
                return
            ready = await self._ready(harness, delivery)
            if not ready:
                return
            outgoing = await self._outgoing(delivery, text)
            written = await self.core.store.write(
                lambda tx: self._mark_written(tx, delivery, outgoing)
            )
            if written is None:
                return
            started = self.core.store.clock.now()
            result = await self._dispatch(harness, written, outgoing)
            await self._finish(written, outgoing, result, started)
        except Exception as error:
            await self._give_up(delivery, _words(error))
            raise
        finally:
            self._current = None
            self._live.partial.pop(delivery.decision, None)
            self._live.status.pop(delivery.decision, None)
            self._live.changed()

    def _full_text(self, delivery: Delivery) -> str | None:
        if not delivery.masked:
            return delivery.text
        return self.core.vault.text_of(delivery.message)

    async def _ready(self, harness: Harness, delivery: Delivery) -> bool:
        try:
            status = await harness.ensure_session(self.ref)
        except IsolaError as error:
            await self._fail(delivery, error.message, FailureKind.UNREACHABLE)
            return False
        except Exception as error:
            await self._fail(delivery, _words(error), FailureKind.ERROR)
            return False
        failures = {
            SessionState.NEEDS_USER: FailureKind.ERROR,
            SessionState.RATE_LIMITED: FailureKind.RATE_LIMITED,
            SessionState.AUTH_EXPIRED: FailureKind.AUTH_EXPIRED,
            SessionState.FAILED: FailureKind.ERROR,
        }
        if status.state in failures:
            await self._fail(delivery, status.detail or status.state, failures[status.state])
            return False
        await self._keep(status.session)
        return True

    async def _keep(self, ref: SessionRef, briefing: str | None = None) -> None:
        if ref != self.ref or briefing is not None:
            await self.core.store.write(
                lambda tx: sessions.update_session(tx, ref, briefing=briefing)
            )
            self.ref = ref

    async def _outgoing(self, delivery: Delivery, text: str) -> Outgoing:
        if delivery.raw:
            return Outgoing(delivery.id, delivery.message, text, raw=True)

        def work(tx: Transaction) -> QuotedContext:
            project = projects.find_project(tx, self.core.owner.id, delivery.project)
            assert project is not None
            owner = self.core.owner
            found = recall(
                tx,
                project_read_set(owner.id, owner.label, project),
                delivery.text,
                self.core.settings.recalled,
            )
            briefing = waiting_briefing(tx, sessions.session(tx, self.session))
            return QuotedContext(
                tuple(each.content[:2_000] for each in found),
                briefing.text,
                (*(each.id for each in found), *briefing.decisions),
            )

        context = await self.core.store.read(work)
        return Outgoing(delivery.id, delivery.message, text, context)

    def _mark_written(
        self, tx: Transaction, delivery: Delivery, outgoing: Outgoing
    ) -> Delivery | None:
        """Commit that the text is about to be handed over. None: it was taken back meanwhile."""
        self._check_fence(tx)
        now = deliveries.delivery_by_id(tx, delivery.id)
        if now.state is not DeliveryState.RUNNING or now.fence != self._fence:
            return None
        digest = hashlib.sha256(outgoing.text.encode()).hexdigest()
        deliveries.move_delivery(
            tx, now, DeliveryState.WRITTEN, generation=self.ref.generation, sent_hash=digest
        )
        decisions.start_window(tx, delivery.decision, self.core.settings.isolation_ms)
        return deliveries.delivery_by_id(tx, delivery.id)

    async def _dispatch(
        self, harness: Harness, delivery: Delivery, outgoing: Outgoing
    ) -> TurnResult:
        proofs: list[str] = []
        receipts: list[asyncio.Task[None]] = []

        def received(proof: str) -> None:
            if not proofs:
                proofs.append(proof)
                receipts.append(asyncio.create_task(self._mark_received(delivery, proof)))

        async def turn() -> TurnResult:
            if isinstance(harness, Streams):
                sink = _sink(self._live, delivery.decision, received)
                return await harness.dispatch_streaming(self.ref, outgoing, sink)
            return await harness.dispatch(self.ref, outgoing)

        self._turn = asyncio.create_task(turn())
        try:
            await self.check_interrupt()
            return await self._turn
        except asyncio.CancelledError:
            if not self._interrupted:
                await _ended(self._turn)
                raise
            return TurnResult(ok=False, error="stopped", failure=FailureKind.CANCELLED)
        except IsolaError as error:
            return TurnResult(ok=False, error=error.message, failure=FailureKind.UNREACHABLE)
        except Exception as error:
            LOG.exception("the harness of session %s failed", self.session)
            return TurnResult(ok=False, error=_words(error), failure=FailureKind.ERROR)
        finally:
            self._turn = None
            await asyncio.gather(*receipts, return_exceptions=True)

    async def _mark_received(self, delivery: Delivery, proof: str) -> None:
        def work(tx: Transaction) -> None:
            now = deliveries.delivery_by_id(tx, delivery.id)
            if now.state is DeliveryState.WRITTEN and now.fence == self._fence:
                deliveries.move_delivery(tx, now, DeliveryState.RECEIVED, proof=mask(proof[:200]))

        await self.core.store.write(work)

    async def check_interrupt(self) -> None:
        """End the running turn if somebody asked for it, from whatever process."""
        delivery, turn = self._current, self._turn
        if delivery is None or turn is None or self._interrupted:
            return
        now = await self.core.store.read(lambda tx: deliveries.delivery_by_id(tx, delivery.id))
        if not now.interrupt or self._turn is not turn:
            return
        self._interrupted = True
        if isinstance(self.harness, Interrupts):
            with contextlib.suppress(HarnessError):
                await self.harness.interrupt(self.ref)
                return
        turn.cancel()

    async def _finish(
        self, delivery: Delivery, outgoing: Outgoing, result: TurnResult, started: int
    ) -> None:
        reply = mask(result.reply[:REPLY_LIMIT]) if result.ok else ""
        error = mask(result.error[:ERROR_LIMIT])
        meta = _meta(result)

        def work(tx: Transaction) -> None:
            now = deliveries.delivery_by_id(tx, delivery.id)
            if now.state not in LIVE_DELIVERIES or now.fence != self._fence:
                return
            if result.backend_id is not None and result.backend_id != self.ref.backend_id:
                self.ref = replace(self.ref, backend_id=result.backend_id)
                sessions.update_session(tx, self.ref)
            state = self._outcome(now, result)
            generation = now.generation if now.generation is not None else self.ref.generation
            deliveries.insert_turn(
                tx, now, generation, result.turn_id, reply, outgoing.context, meta, started
            )
            kept = state is DeliveryState.ANSWERED and not now.interrupt
            if not kept:
                deliveries.excise_turn(tx, now.id)
            elif outgoing.context.briefing and generation == self.ref.generation:
                sessions.update_session(tx, self.ref, briefing="")
            deliveries.move_delivery(
                tx,
                now,
                state,
                error=error or ("" if result.received else "the agent's record does not show it"),
                failure=result.failure,
                unwritten=not result.ok and not result.written,
            )
            if now.interrupt and not result.ok and not result.written:
                deliveries.drop_rewind(tx, now.id)

        await self.core.store.write(work)

    @staticmethod
    def _outcome(now: Delivery, result: TurnResult) -> DeliveryState:
        if result.ok:
            return DeliveryState.ANSWERED if result.received else DeliveryState.UNKNOWN
        if now.interrupt or result.failure is FailureKind.CANCELLED:
            return DeliveryState.CANCELLED
        return DeliveryState.FAILED

    async def _fail(self, delivery: Delivery, error: str, failure: FailureKind | None) -> None:
        """Before anything was written."""

        def work(tx: Transaction) -> None:
            now = deliveries.delivery_by_id(tx, delivery.id)
            if now.state is DeliveryState.RUNNING and now.fence == self._fence:
                deliveries.move_delivery(
                    tx,
                    now,
                    DeliveryState.FAILED,
                    error=mask(error[:ERROR_LIMIT]),
                    failure=failure,
                )

        await self.core.store.write(work)

    async def _give_up(self, delivery: Delivery, error: str) -> None:
        """Something of ours failed: what was not written has failed, the rest is unknown."""

        def work(tx: Transaction) -> None:
            now = deliveries.delivery_by_id(tx, delivery.id)
            if now.fence != self._fence or now.state not in LIVE_DELIVERIES:
                return
            running = now.state is DeliveryState.RUNNING
            state = DeliveryState.FAILED if running else DeliveryState.UNKNOWN
            deliveries.move_delivery(tx, now, state, error=mask(error[:ERROR_LIMIT]))

        await self.core.store.write(work)

    # -- unknown deliveries

    async def _confirm_unknown(self, harness: Harness) -> None:
        """Ask the backend's own record about deliveries whose end nobody saw."""
        waiting = await self.core.store.read(
            lambda tx: deliveries.open_deliveries(tx, self.session)
        )
        for delivery in waiting:
            if delivery.state is not DeliveryState.UNKNOWN or not isinstance(harness, Confirms):
                continue
            text = self._full_text(delivery)
            if text is None or delivery.generation != self.ref.generation:
                continue
            outgoing = Outgoing(delivery.id, delivery.message, text, raw=delivery.raw)
            try:
                receipt = await harness.confirm(self.ref, outgoing)
            except Exception:
                LOG.exception("confirming delivery %s failed", delivery.id)
                continue

            settle = partial(
                settle_by_receipt, core=self.core, delivery=delivery.id, receipt=receipt
            )
            await self.core.store.write(settle)


def _sink(
    live: Live, decision: str, received: Callable[[str], None]
) -> Callable[[TurnEvent], None]:
    def sink(event: TurnEvent) -> None:
        if event.kind is TurnEventKind.RECEIVED:
            received(event.text)
        else:
            live.hear(decision, event)

    return sink


def _meta(result: TurnResult) -> str:
    try:
        text = mask(msgspec.json.encode(dict(result.meta)).decode())
    except (TypeError, msgspec.MsgspecError):
        return "{}"
    return text if len(text) <= META_LIMIT else "{}"


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _ended(task: asyncio.Task[TurnResult]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
