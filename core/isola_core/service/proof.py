"""What a dead driver left, and what the backend's own record proves about it.

RUNNING was never written, so it is sent again by itself; WRITTEN and RECEIVED may have arrived, so
they are unknown until the record or the person settles them.
"""

from __future__ import annotations

from typing import Final

from isola_core.model import DecisionState, DeliveryState
from isola_core.ports import QuotedContext, Receipt, ReceiptState
from isola_core.secrets import mask
from isola_core.service.outbox import new_attempt
from isola_core.service.settings import Core
from isola_core.store import decisions, deliveries
from isola_core.store.deliveries import Delivery
from isola_core.store.transaction import Transaction

AUTOMATIC_ATTEMPTS: Final = 5
"""After so many attempts a message waits for the person instead of being tried again by itself."""


def recover(tx: Transaction, core: Core, session: str) -> None:
    """Settle what a dead driver of this session left, as its lease goes to the next one."""
    for delivery in deliveries.open_deliveries(tx, session):
        match delivery.state:
            case DeliveryState.RUNNING:
                error = "the program ended before it was sent"
                deliveries.move_delivery(tx, delivery, DeliveryState.FAILED, error=error)
                _try_again(tx, core, delivery)
            case DeliveryState.WRITTEN | DeliveryState.RECEIVED:
                if delivery.interrupt:
                    error = "stopped"
                    deliveries.move_delivery(tx, delivery, DeliveryState.CANCELLED, error=error)
                else:
                    error = "the program ended while it was on its way"
                    deliveries.move_delivery(tx, delivery, DeliveryState.UNKNOWN, error=error)
            case _:
                pass


def settle_by_receipt(tx: Transaction, core: Core, delivery: str, receipt: Receipt) -> None:
    """End an unknown delivery as the backend's record proves; without proof it stays unknown."""
    now = deliveries.delivery_by_id(tx, delivery)
    if now.state is not DeliveryState.UNKNOWN:
        return
    proof = mask(receipt.proof)
    match receipt.state:
        case ReceiptState.UNKNOWN:
            return
        case ReceiptState.ABSENT if _ended_in_sight(tx, core, now):
            # The backend answered and its record lacks the message: sending it again might double
            # what the turn did, so that is for the person to say.
            return
        case ReceiptState.ABSENT:
            error = "it had not arrived; sent again"
            deliveries.move_delivery(tx, now, DeliveryState.FAILED, error=error, unwritten=True)
            _try_again(tx, core, now)
        case ReceiptState.RECEIVED:
            error = "it arrived, then its turn was cut off"
            deliveries.move_delivery(tx, now, DeliveryState.FAILED, error=error, proof=proof)
        case ReceiptState.ANSWERED:
            deliveries.insert_turn(
                tx,
                now,
                now.generation or 0,
                receipt.turn_id,
                mask(receipt.reply),
                QuotedContext(),
                "{}",
                now.written or tx.now,
            )
            deliveries.move_delivery(tx, now, DeliveryState.ANSWERED, error="", proof=proof)
            decisions.start_window(tx, now.decision, core.settings.isolation_ms)


def _ended_in_sight(tx: Transaction, core: Core, delivery: Delivery) -> bool:
    (view,) = decisions.decision_views(tx, core.owner.id, [delivery.decision])
    return view.attempt == delivery.attempt and view.replied is not None


def _try_again(tx: Transaction, core: Core, delivery: Delivery) -> None:
    """A new attempt for what never arrived, unless it was taken back."""
    (view,) = decisions.decision_views(tx, core.owner.id, [delivery.decision])
    if view.state is DecisionState.TENTATIVE and delivery.attempt < AUTOMATIC_ATTEMPTS:
        new_attempt(tx, core, delivery.decision)
