"""A backend that needs no model: every message is a note of its project.

The turn itself is the note; nothing else is stored. The answer quotes the project's own earlier
notes that are nearest to the message, each with its date.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from math import log
from typing import Final

import msgspec
import yaml

from isola_core.ports import (
    Outgoing,
    PastTurn,
    Receipt,
    Rewound,
    SessionRef,
    SessionState,
    SessionStatus,
    TurnRef,
    TurnResult,
    next_generation,
)
from isola_core.text import normalise_message, safe_label, terms
from isola_harnesses import own_history
from isola_harnesses.registry import HarnessServices
from isola_harnesses.settings import read_settings

MAX_QUOTED: Final = 3
"""Notes in one answer."""

_QUOTE_LENGTH: Final = 200
_K1: Final = 1.2
_B: Final = 0.75
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL: Final = re.compile("[\u3041-\u30ff\u1100-\u11ff\uac00-\ud7a3]")
_LATIN_WORD: Final = re.compile(r"[A-Za-z\u00c0-\u024f]+")


class NotebookSettings(msgspec.Struct, frozen=True):
    """The `harness:` section of type `notebook`: it has no settings."""


@dataclass(frozen=True, slots=True)
class Words:
    """One language's wording, and the words that do not make a note related."""

    none: str
    first: str
    related: str
    ignored: frozenset[str]


def create(settings: Mapping[str, object], services: HarnessServices) -> NotebookHarness:
    """The entry point; raises `ConfigError` for any setting."""
    read_settings(NotebookSettings, settings, "the notebook harness")
    return NotebookHarness(services)


class NotebookHarness:
    """Files messages as notes; implements Rewinds, Rebuilds and Confirms, by the history."""

    rebuilds_history = True

    def __init__(self, services: HarnessServices) -> None:
        self._services = services

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        """Always ready."""
        return SessionStatus(session, SessionState.IDLE, "a notebook, no model")

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        """File the message and answer with the nearest earlier notes of this session."""
        notes = await self._services.history.turns(session)
        words = wording()["zh" if is_mostly_chinese(message.text) else "en"]
        found = related(message.text, notes)
        return TurnResult(
            ok=True,
            reply=_answer(words, found, len(notes) + 1),
            turn_id=message.delivery,
            meta={"notes": len(notes) + 1, "related": [each.delivery for each in found]},
        )

    async def reset_session(self, session: SessionRef) -> SessionRef:
        """A new, empty page; the old one stays in the store."""
        return next_generation(session)

    async def rewind(self, session: SessionRef, turn: TurnRef) -> Rewound:
        """Nothing to do: the note is the turn, and the turn is out of the history."""
        return Rewound(session, replaced=False, note="The note is out of the notebook.")

    async def confirm(self, session: SessionRef, message: Outgoing) -> Receipt:
        """By the history, which is the notebook."""
        return await own_history.receipt(self._services.history, session, message)

    async def close(self) -> None:
        """Nothing is held."""


def related(text: str, notes: Sequence[PastTurn]) -> tuple[PastTurn, ...]:
    """The notes that share words with `text`, nearest first (BM25, newer first when equal)."""
    ignored = wording()["en"].ignored | wording()["zh"].ignored
    asked = set(terms(text)) - ignored
    if not asked or not notes:
        return ()
    counts = [Counter(terms(note.sent)) for note in notes]
    lengths = [max(1, count.total()) for count in counts]
    average = sum(lengths) / len(lengths)
    spread = {word: sum(word in count for count in counts) for word in asked}
    rarity = {
        word: log(1 + (len(notes) - holders + 0.5) / (holders + 0.5))
        for word, holders in spread.items()
    }
    scored: list[tuple[float, int]] = []
    for place, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        damping = _K1 * (1 - _B + _B * length / average)
        score = sum(
            rarity[word] * count[word] * (_K1 + 1) / (count[word] + damping)
            for word in asked
            if word in count
        )
        if score > 0:
            scored.append((score, place))
    scored.sort(reverse=True)
    return tuple(notes[place] for _, place in scored[:MAX_QUOTED])


def is_mostly_chinese(text: str) -> bool:
    """Whether more of a text is Chinese than Latin words; Japanese and Korean are not Chinese."""
    if _KANA_OR_HANGUL.search(text):
        return False
    return len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))


@cache
def wording() -> Mapping[str, Words]:
    """The languages' wordings out of `lexicon/notebook.yaml`."""
    source = resources.files("isola_harnesses") / "lexicon" / "notebook.yaml"
    table: dict[str, dict[str, str]] = yaml.safe_load(source.read_text(encoding="utf-8"))
    return {
        language: Words(
            none=words["none"],
            first=words["first"],
            related=words["related"],
            ignored=frozenset(words["ignored"].split()),
        )
        for language, words in table.items()
    }


def _answer(words: Words, found: Sequence[PastTurn], count: int) -> str:
    if count == 1:
        return words.first
    if not found:
        return words.none.format(count=count)
    quotes = [
        f"> {_date(note.started)} — {safe_label(normalise_message(note.sent), _QUOTE_LENGTH)}"
        for note in found
    ]
    return "\n".join([words.related.format(count=count), *quotes])


def _date(started: int) -> str:
    """UTC milliseconds as a date and a time for people."""
    return datetime.fromtimestamp(started / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
