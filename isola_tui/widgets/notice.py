"""What the program has to say: it stays until the next act, so that nobody has to read fast."""

from __future__ import annotations

from enum import StrEnum

from textual.content import Content
from textual.widgets import Static

from isola_tui.lines import plain


class Tone(StrEnum):
    """How a notice is meant."""

    DONE = "done"
    HINT = "hint"
    REFUSED = "refused"


class Notice(Static):
    """A few lines above the entry."""

    def __init__(self) -> None:
        super().__init__(id="notice", markup=False)
        self.display = False
        self.text = ""
        """What stands there, "" for nothing."""

    def say(self, text: str, tone: Tone = Tone.DONE) -> None:
        """Show a text; it replaces what stood there."""
        self.text = text
        for each in Tone:
            self.set_class(each is tone, f"-{each}")
        glyph = {Tone.DONE: "✓", Tone.HINT: "›", Tone.REFUSED: "!"}[tone]
        lines = Content(plain(text)).wrap(max(20, self.app.size.width - 6))
        first, *rest = lines or [Content.empty()]
        drawn = [Content.assemble((f"{glyph} ", "bold"), first)]
        drawn += [Content.assemble("  ", each) for each in rest]
        self.update(Content("\n").join(drawn))
        self.display = True

    def clear(self) -> None:
        """Take it away."""
        self.text = ""
        self.display = False
