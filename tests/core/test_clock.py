"""The real clock and the real ids."""

from __future__ import annotations

import re
import time

from isola_core.clock import ID_ALPHABET, RandomIds, SystemClock
from isola_core.ports import Clock, Ids


def test_the_clock_tells_utc_milliseconds() -> None:
    clock: Clock = SystemClock()
    before = int(time.time() * 1000)
    assert before <= clock.now() <= int(time.time() * 1000) + 1


async def test_a_sleep_of_nothing_or_less_returns() -> None:
    await SystemClock().sleep(0)
    await SystemClock().sleep(-5)


def test_an_id_is_prefix_and_twelve_characters_that_can_be_read_aloud() -> None:
    ids: Ids = RandomIds()
    made = [ids.new("d") for _ in range(2000)]
    assert all(re.fullmatch(r"d-[0-9abcdefghjkmnpqrstvwxyz]{12}", each) for each in made)
    assert len(set(made)) == len(made)
    assert {letter for each in made for letter in each[2:]} == set(ID_ALPHABET)
