"""One hierarchy of errors. Each has a stable `code` that programs match on and a text for people.

The text says what happened, what was kept and what to do next. It never holds a secret.
"""

from __future__ import annotations

from typing import ClassVar


class IsolaError(Exception):
    """Base of everything Isola raises on purpose."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        """Machine-readable facts about the refusal, such as candidates; safe to print."""


class IllegalTransition(IsolaError):
    """A state machine was asked for a step that its table does not have."""

    code = "illegal_transition"


class InvalidInput(IsolaError):
    """A message, name or option that cannot be used as it is."""

    code = "invalid_input"


class SecretRefused(IsolaError):
    """The text holds a credential; nothing was stored. `details["findings"]` has masked samples."""

    code = "secret_content_rejected"


class NotFound(IsolaError):
    """No such project, decision, session or memory."""

    code = "not_found"


class Ambiguous(IsolaError):
    """An abbreviated id or a name fits several things; `details["candidates"]` lists them."""

    code = "ambiguous"


class Conflict(IsolaError):
    """The thing exists already, or it is not in a state that allows the act."""

    code = "conflict"


class TextNeeded(Conflict):
    """The message was sent unstored and its text is gone; send it again to correct it."""

    code = "text_needed"


class ConfigError(IsolaError):
    """The configuration cannot be used. `details["problems"]`: a line for each wrong value."""

    code = "config"


class StoreError(IsolaError):
    """The database cannot be opened, read or written."""

    code = "store"


class StoreTooNew(StoreError):
    """The database was written by a newer version; this one must not touch it."""

    code = "store_too_new"


class HarnessError(IsolaError):
    """A backend cannot be used at all (not found, not logged in, endpoint refuses)."""

    code = "harness"


class JudgeError(IsolaError):
    """A judge gave no usable answer: down, late, or nonsense. It becomes a card, never a guess."""

    code = "judge"
