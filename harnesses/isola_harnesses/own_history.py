"""Proof of receipt for backends that keep nothing: their only record is the store's own history."""

from __future__ import annotations

from isola_core.ports import History, Outgoing, Receipt, ReceiptState, SessionRef


async def receipt(history: History, session: SessionRef, message: Outgoing) -> Receipt:
    """ANSWERED where the history holds the delivery's turn, else ABSENT.

    ABSENT is exact: the backend has no memory of its own, so a turn that is not in the history is
    not in the session, whatever went over the wire before a crash.
    """
    for turn in await history.turns(session):
        if turn.delivery == message.delivery:
            return Receipt(ReceiptState.ANSWERED, turn.reply, proof="the turn is in the history")
    return Receipt(ReceiptState.ABSENT, proof="the session's whole history has no such turn")
