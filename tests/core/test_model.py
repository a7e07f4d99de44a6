"""The transition tables: what the design draws, and nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from isola_core.errors import IllegalTransition
from isola_core.model import (
    ACTIVE_DECISIONS,
    DECISION_TRANSITIONS,
    DELIVERY_TRANSITIONS,
    LIVE_DELIVERIES,
    MEMORY_TRANSITIONS,
    REWIND_TRANSITIONS,
    WRITE_TASK_TRANSITIONS,
    DecisionState,
    DeliveryState,
    check_transition,
)

TABLES: list[dict[Any, frozenset[Any]]] = [
    DECISION_TRANSITIONS,
    DELIVERY_TRANSITIONS,
    WRITE_TASK_TRANSITIONS,
    REWIND_TRANSITIONS,
    MEMORY_TRANSITIONS,
]


@pytest.mark.parametrize("table", TABLES)
def test_every_state_has_its_row_and_only_the_table_decides(
    table: dict[StrEnum, frozenset[StrEnum]],
) -> None:
    states = list(type(next(iter(table))))
    assert set(table) == set(states)
    for old in states:
        for new in states:
            if new in table[old]:
                check_transition(table, old, new)
            else:
                with pytest.raises(IllegalTransition, match="cannot become"):
                    check_transition(table, old, new)


def test_an_ended_decision_stays_ended() -> None:
    for state in set(DecisionState) - ACTIVE_DECISIONS:
        assert DECISION_TRANSITIONS[state] == frozenset()


def test_every_delivery_that_is_not_over_can_fail_or_be_cancelled() -> None:
    for state in {DeliveryState.PENDING, *LIVE_DELIVERIES, DeliveryState.UNKNOWN}:
        assert DELIVERY_TRANSITIONS[state] >= {DeliveryState.FAILED, DeliveryState.CANCELLED}


def test_a_delivery_cannot_be_received_before_it_was_committed_as_written() -> None:
    for state in (DeliveryState.PENDING, DeliveryState.RUNNING):
        assert not DELIVERY_TRANSITIONS[state] & {DeliveryState.RECEIVED, DeliveryState.ANSWERED}
