"""Writing to a terminal that is gone: nobody waits, and what came before was written."""

from __future__ import annotations

import io
import threading

from isola_tui.lost_terminal import LastingWriter


class Gone(io.StringIO):
    """A file that takes two texts, then has no other end."""

    def write(self, text: str, /) -> int:
        if len(self.getvalue()) >= 2:
            raise OSError(5, "Input/output error")
        return super().write(text)


def test_a_writer_whose_terminal_is_gone_holds_nobody_up() -> None:
    file = Gone()
    writer = LastingWriter(file)
    writer.start()

    def write_on() -> None:
        for _ in range(200):
            writer.write("x")
        writer.stop()

    thread = threading.Thread(target=write_on, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert file.getvalue() == "xx"
