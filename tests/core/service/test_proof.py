"""What a backend's record proves about a delivery whose end is unknown, and what it does not."""

from __future__ import annotations

from isola_core.model import DeliveryState
from isola_core.ports import Outgoing, Receipt, ReceiptState, SessionRef
from tests.core.world import World


async def test_an_answered_message_that_the_record_lacks_is_never_sent_again_by_itself(
    world: World,
) -> None:
    async def lacks_it(session: SessionRef, message: Outgoing) -> Receipt:
        return Receipt(ReceiptState.ABSENT, proof="not in the record")

    world.harness.proves_receipt = False
    world.harness.confirm = lacks_it  # type: ignore[method-assign]
    decision = await world.say("@billing delete the old invoices")
    await world.deliver()
    assert (await world.now(decision)).delivery is DeliveryState.UNKNOWN
    world.harness.proves_receipt = True
    await world.say("@billing next")
    await world.deliver()
    view = await world.now(decision)
    assert (view.delivery, view.attempt) == (DeliveryState.UNKNOWN, 1)
    assert world.harness.texts("billing") == ["delete the old invoices", "next"]
    settled = await world.service.settle(decision.id)
    assert settled.delivery is DeliveryState.ANSWERED
