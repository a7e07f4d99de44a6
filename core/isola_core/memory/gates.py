"""The gates between a committed message and memory: information, scope, secret, dedup.

Each gate answers with the reason for which a text does not become a memory. Dedup is the store's:
one ACTIVE memory for each owner, scope and content hash.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from isola_core.model import DecisionState, MemoryKind
from isola_core.secrets import find_secrets
from isola_core.text import is_blank

DURABLE: Final = frozenset(
    {
        MemoryKind.FACT,
        MemoryKind.DECISION,
        MemoryKind.CONSTRAINT,
        MemoryKind.PREFERENCE,
        MemoryKind.CONVENTION,
        MemoryKind.GOTCHA,
        MemoryKind.REFERENCE,
    }
)
"""Kinds that stay; the others are history or open loops."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the words of a text say: whether it carries no information, and which kind it is.

    The lexicons belong to attribution; the service hands them in.
    """

    is_low_signal: Callable[[str], bool]
    memory_kind: Callable[[str], MemoryKind]


@dataclass(frozen=True, slots=True)
class Passed:
    """A text that may become a memory."""

    kind: MemoryKind
    durability: str
    hash: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A text that does not, and why: `information`, `scope` or `secret`."""

    gate: str
    reason: str


def content_hash(text: str) -> str:
    """Equal for texts that are the same after trimming and Unicode composition."""
    return hashlib.sha256(unicodedata.normalize("NFC", text.strip()).encode()).hexdigest()


def pass_gates(
    text: str, decision_state: str, scope: str, reading: Reading, kind: str | None = None
) -> Passed | Refused:
    """Whether a committed text becomes a memory. `kind` None: by the words of the text."""
    if decision_state != DecisionState.COMMITTED:
        return Refused("scope", "its decision is not committed")
    if not scope:
        return Refused("scope", "no project")
    if is_blank(text):
        return Refused("information", "blank")
    if reading.is_low_signal(text):
        return Refused("information", "a confirmation or continuation")
    if find_secrets(text):
        return Refused("secret", "it looks like it holds a credential")
    found = MemoryKind(kind) if kind else reading.memory_kind(text)
    return Passed(found, "durable" if found in DURABLE else "history", content_hash(text))
