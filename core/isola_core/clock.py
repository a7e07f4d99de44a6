"""The real clock and the real ids, behind the ports `Clock` and `Ids`."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Final

ID_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base32: no i, l, o, u, so that an id can be read aloud and typed."""

ID_LENGTH: Final = 12
"""Characters after the prefix: 60 random bits."""


class SystemClock:
    """Wall-clock time of this machine."""

    def now(self) -> int:
        """UTC milliseconds."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait; zero and less only give way to the other tasks."""
        await asyncio.sleep(max(0.0, seconds))


class RandomIds:
    """Ids from the system's random source."""

    def new(self, prefix: str) -> str:
        """`prefix`, a hyphen and 12 random characters, such as `d-3k9x0v7mq2pt`."""
        bits = secrets.randbits(5 * ID_LENGTH)
        letters = (ID_ALPHABET[bits >> 5 * place & 31] for place in range(ID_LENGTH))
        return f"{prefix}-{''.join(letters)}"
