"""Full text inside one scope, on SQLite: each scope has an FTS5 table of its own.

An index per scope keeps word statistics apart (a shared table ranks one project by the words of the
others) and makes isolation structural: a query of one scope has no way to touch another's rows. The
caller hands in terms (`isola_core.text.terms`), so Chinese bigrams and Latin stems both work and no
query text ever reaches the MATCH grammar unquoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isola_core.store.transaction import Row, Transaction, marks

QUERY_TERMS: Final = 64
"""At most this many different terms of a query are looked up."""


def _table(scope_seq: int) -> str:
    return f"scope_index_{int(scope_seq)}"


def create_index(tx: Transaction, scope_seq: int) -> None:
    """The empty index of a new scope."""
    tx.run(
        f"CREATE VIRTUAL TABLE {_table(scope_seq)} USING fts5"
        "(terms, tokenize = 'porter unicode61 remove_diacritics 2')"
    )


def add_to_index(tx: Transaction, scope_seq: int, memory_seq: int, terms: Iterable[str]) -> None:
    """Make one memory findable."""
    tx.run(
        f"INSERT INTO {_table(scope_seq)} (rowid, terms) VALUES (?, ?)",  # noqa: S608
        memory_seq,
        " ".join(terms),
    )


def remove_from_index(tx: Transaction, scope_seq: int, memory_seq: int) -> None:
    """Make one memory unfindable, in the same transaction that retires it."""
    tx.run(f"DELETE FROM {_table(scope_seq)} WHERE rowid = ?", memory_seq)  # noqa: S608


def match_query(terms: Sequence[str]) -> str:
    """An FTS5 query for any of the terms; empty when there is nothing to look for."""
    words = list(dict.fromkeys(word for word in terms if any(c.isalnum() for c in word)))
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words[:QUERY_TERMS])


def search_index(
    tx: Transaction, scope_seq: int, scope: str, owner: str, terms: Sequence[str], limit: int
) -> list[Row]:
    """ACTIVE memories of one scope by BM25, best first; `score` is larger for better hits."""
    query = match_query(terms)
    if not query:
        return []
    table = _table(scope_seq)
    return tx.all(
        f"SELECT m.*, -bm25({table}) AS score FROM {table} "  # noqa: S608
        f"JOIN memories AS m ON m.seq = {table}.rowid "
        f"WHERE {table} MATCH ? AND m.scope = ? AND m.state = 'ACTIVE' "
        "AND (m.visibility = 'shared' OR m.owner = ?) "
        f"ORDER BY bm25({table}), m.seq DESC LIMIT ?",
        query,
        scope,
        owner,
        limit,
    )


def scope_sequences(tx: Transaction, scopes: Sequence[str]) -> dict[str, int]:
    """The index number of each scope that exists."""
    rows = tx.all(f"SELECT path, seq FROM scopes WHERE path IN ({marks(scopes)})", *scopes)  # noqa: S608
    return {row["path"]: row["seq"] for row in rows}
