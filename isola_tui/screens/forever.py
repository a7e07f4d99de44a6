"""What must run as long as the program does: the dispatcher, the tick, the watcher."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from isola_core.errors import IsolaError

LOG = logging.getLogger("isola.screen")

PAUSE_S: Final = 1.0
"""Between a failure and the next attempt, so that a full disk does not become a full core too."""


async def run_forever(
    work: Callable[[], Coroutine[Any, Any, None]], tell: Callable[[str], None]
) -> None:
    """Run `work` until cancelled; a failure is logged, told, and `work` begins again."""
    while True:
        try:
            await work()
        except Exception as error:
            LOG.exception("a part of the program failed")
            tell(error.message if isinstance(error, IsolaError) else type(error).__name__)
        await asyncio.sleep(PAUSE_S)
