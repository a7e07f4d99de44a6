"""How much stands before a message that would be sent to a session now."""

from __future__ import annotations

from isola_core.model import LIVE_DELIVERIES, DecisionState, DeliveryState, Target
from isola_tui.board import Board


def ahead_of(board: Board, target: Target | None) -> int:
    """The turn that the target's session is running, and the messages that wait for it."""
    if target is None:
        return 0
    open_states = LIVE_DELIVERIES | {DeliveryState.PENDING}
    return sum(
        each.state is DecisionState.TENTATIVE
        and (each.project, each.lane) == (target.project, target.lane)
        and each.delivery in open_states
        for each in board.decisions.values()
    )
