"""Recall: ranked full text inside a read set.

The read set filters before anything is ranked or limited. Each scope has its own index and its own
word statistics; the scopes' lists are merged by reciprocal rank, so that one scope's scores never
compete with another's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from isola_core.model import MemoryView, ReadSet
from isola_core.store import memories
from isola_core.store.transaction import Transaction
from isola_core.text import terms

RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion; the customary value."""

QUERY_CHARACTERS: Final = 10_000
"""Only the beginning of a longer query is looked up."""

HISTORY_WEIGHT: Final = 0.8
"""Requests (episodes) rank below what is durable."""


def recall(tx: Transaction, read_set: ReadSet, query: str, limit: int) -> list[MemoryView]:
    """The memories of `read_set` that fit `query` best, best first; [] when none does.

    `limit` is the number of memories. Any text is a safe query.
    """
    words = terms(query[:QUERY_CHARACTERS])
    if not words or limit < 1:
        return []
    ranked: list[MemoryView] = []
    for hits in memories.search_memories(tx, read_set, words, limit * 4):
        for rank, hit in enumerate(hits):
            weight = HISTORY_WEIGHT if hit.durability == "history" else 1.0
            ranked.append(replace(hit, score=weight / (RANK_CONSTANT + rank)))
    ranked.sort(key=lambda hit: (-hit.score, -hit.created, hit.id))
    return ranked[:limit]
