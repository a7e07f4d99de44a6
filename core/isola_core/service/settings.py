"""What the use cases share: whose store it is, where we run, and the numbers people may set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from isola_core.model import Project
from isola_core.ports import Ids
from isola_core.store import projects as project_rows
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction

MESSAGE_LIMIT: Final = 4 * 1024 * 1024
"""Longest message in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The person whose store this is: id and the label that stands in scope paths."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers from the configuration. Times in milliseconds."""

    isolation_ms: int = 300_000
    inertia_ms: int = 4 * 3_600_000
    auto_at: float = 0.95
    write_timeout_ms: int = 60_000
    write_attempts: int = 3
    recalled: int = 5


@dataclass(slots=True)
class Vault:
    """Texts of messages sent unstored, by message id. They live in this process only."""

    texts: dict[str, str] = field(default_factory=dict)

    def text_of(self, message: str) -> str | None:
        """The full text, or None when this process never had it."""
        return self.texts.get(message)


@dataclass(frozen=True, slots=True)
class Core:
    """The shared ground of all use cases of one process."""

    store: SqliteStore
    owner: Owner
    machine: str
    settings: Settings
    ids: Ids
    vault: Vault
    harness_of: Callable[[Project], str]
    """The name of the harness that a project uses."""


async def ensure_owner(store: SqliteStore, ids: Ids, machine: str, machine_name: str) -> Owner:
    """The store's person and this machine, registered on first use."""

    def work(tx: Transaction) -> Owner:
        project_rows.add_machine(tx, machine, machine_name)
        found = project_rows.local_owner(tx)
        if found is None:
            owner = ids.new("usr")
            found = (owner, owner.replace("-", "_"))
            project_rows.add_owner(tx, *found)
        return Owner(*found)

    def look(tx: Transaction) -> Owner | None:
        found = project_rows.local_owner(tx)
        known = tx.one("SELECT 1 AS found FROM machines WHERE id = ?", machine)
        return Owner(*found) if found and known else None

    known = await store.read(look)
    return known if known is not None else await store.write(work)
