"""A terminal that is closed ends the program; it must not hang it.

Textual 8.2 writes in a thread that a gone terminal ends with an error. Its queue fills up, and the
program's end, which writes too, then waits for ever and keeps its sessions' leases.
"""

from __future__ import annotations

from typing import IO

from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread


class LastingWriter(WriterThread):
    """Textual's writer, which takes what it cannot write out of its queue too."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._gone = False

    def run(self) -> None:
        """Write until told to stop; after the first failure only take."""
        while (text := self._queue.get()) is not None:
            self._put(text)
        self._put("")

    def _put(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._file.write(text)
            if self._queue.qsize() == 0:
                self._file.flush()
        except (OSError, ValueError):  # ValueError: the file was closed
            self._gone = True


def outlive_terminal() -> None:
    """Have the terminal's driver use this writer."""
    linux_driver.WriterThread = LastingWriter  # type: ignore[attr-defined]
