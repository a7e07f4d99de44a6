"""The entry: one line that grows, where every message begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from isola_core.text import is_blank, normalise_message
from isola_tui.completion import Offer
from isola_tui.lines import visible

PASTE_CHARACTERS: Final = 4_000
"""A longer paste stands as one short mark: a text area wraps every line again at every key."""


class Entry(TextArea, inherit_bindings=False):
    """A text area where Enter sends.

    Long pastes are folded into marks such as `⟦paste 1: 20,000 lines⟧`; `message` has the whole.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="send"),
        Binding("ctrl+j,alt+enter,shift+enter", "newline", "New line", id="newline"),
        Binding("tab", "target(1)", "Target", id="target_next"),
        Binding("shift+tab", "target(-1)", "Target before", id="target_previous"),
        Binding("ctrl+l", "want('lock')", "Lock to a project", id="lock"),
        Binding("ctrl+g", "want('send_as')", "Send another way", id="send_as"),
        Binding("f10", "send(True)", "Send first", id="urgent"),
        Binding("alt+r", "want('raw')", "Raw", id="raw"),
        Binding("up", "up", "Up", id="entry_up"),
        Binding("down", "down", "Down", id="entry_down"),
        Binding("left", "cursor_left", "Left", id="entry_left"),
        Binding("right", "cursor_right", "Right", id="entry_right"),
        Binding("ctrl+left,alt+b", "cursor_word_left", "Word left", id="entry_word_left"),
        Binding("ctrl+right,alt+f", "cursor_word_right", "Word right", id="entry_word_right"),
        Binding("home,ctrl+a", "cursor_line_start", "Line start", id="entry_home"),
        Binding("end,ctrl+e", "cursor_line_end", "Line end", id="entry_end"),
        Binding("shift+left", "cursor_left(True)", "Select left", id="entry_select_left"),
        Binding("shift+right", "cursor_right(True)", "Select right", id="entry_select_right"),
        Binding("shift+up", "cursor_up(True)", "Select up", id="entry_select_up"),
        Binding("shift+down", "cursor_down(True)", "Select down", id="entry_select_down"),
        Binding("shift+home", "cursor_line_start(True)", "Select to start", id="entry_select_home"),
        Binding("shift+end", "cursor_line_end(True)", "Select to end", id="entry_select_end"),
        Binding("backspace,ctrl+h", "delete_left", "Delete left", id="entry_delete_left"),
        Binding("delete,ctrl+d", "delete_right", "Delete right", id="entry_delete_right"),
        Binding(
            "ctrl+w,ctrl+backspace,alt+backspace",
            "delete_word_left",
            "Delete word",
            id="entry_delete_word_left",
        ),
        Binding(
            "alt+delete,alt+d",
            "delete_word_right",
            "Delete next word",
            id="entry_delete_word_right",
        ),
        Binding("ctrl+u", "delete_to_start_of_line", "Delete to start", id="entry_delete_to_start"),
        Binding(
            "ctrl+k",
            "delete_to_end_of_line_or_delete_line",
            "Delete to end",
            id="entry_delete_to_end",
        ),
        Binding("ctrl+x", "cut", "Cut", id="entry_cut"),
        Binding("ctrl+v", "paste", "Paste", id="entry_paste"),
        Binding("ctrl+z", "undo", "Undo typing", id="entry_undo"),
        Binding("ctrl+shift+z", "redo", "Redo typing", id="entry_redo"),
    ]

    class Changed(TextArea.Changed):
        """The text has changed; `message` is the whole of it at that moment.

        Keys may arrive faster than messages are handled, so each change carries its own text.
        """

        def __init__(self, text_area: TextArea) -> None:
            super().__init__(text_area)
            self.message = text_area.message if isinstance(text_area, Entry) else ""

    @dataclass
    class Submitted(Message):
        """Enter was pressed on a text that is not blank; it has left the entry.

        `urgent`: it stops the session's running turn and goes first.
        """

        text: str
        urgent: bool = False

    @dataclass
    class TargetStepped(Message):
        """Another target is wanted."""

        step: int

    @dataclass
    class Wanted(Message):
        """Something other than sending is wanted of the text: `lock`, `raw`, `send_as`."""

        act: str

    @dataclass
    class Offered(Message):
        """What may stand behind the `@` has changed; `picked` is the person's place in it."""

        offers: tuple[Offer, ...]
        picked: int | None

    def __init__(self) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, id="entry", compact=True)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.sent: list[str] = []
        self._place: int | None = None
        """Where in the history we stand; None: in what is being typed."""
        self._typed = ""
        self._pastes: dict[str, str] = {}
        self.complete: Callable[[str], tuple[Offer, ...]] = lambda before: ()
        """What the text before the cursor may go on with."""
        self._offers: tuple[Offer, ...] = ()
        self._offered_for: tuple[str, tuple[int, int]] | None = None
        self._picked: int | None = None
        self._dismissed = False

    # -- what it holds

    @property
    def message(self) -> str:
        """The whole text, long pastes unfolded."""
        text = self.text
        for mark, pasted in self._pastes.items():
            text = text.replace(mark, pasted)
        return text

    def load_message(self, text: str) -> None:
        """Put a text into the entry, the cursor at its end; long ones are folded."""
        self._pastes.clear()
        self._place = None
        self.text = self._folded(normalise_message(text))
        self.move_cursor(self.document.end)

    def put_back(self, text: str) -> None:
        """Return a text to its author, in front of what they have typed since."""
        rest = self.message
        self.load_message(text if is_blank(rest) else f"{text}\n{rest}")

    def _folded(self, text: str) -> str:
        if len(text) <= PASTE_CHARACTERS:
            return text
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        mark = f"⟦paste {len(self._pastes) + 1}: {size}⟧"
        self._pastes[mark] = text
        return mark

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn: what turns the reading direction is seen, and turns nothing."""
        return Text(visible(super().get_line(line_index).plain), end="", no_wrap=True)

    # -- keys

    def action_send(self, urgent: bool = False) -> None:
        """Hand the text over and begin anew; blank texts stay. A picked offer is taken instead."""
        if not urgent and self.offers and self._picked is not None:
            self._take(self._offers[self._picked])
            return
        text = self.message
        if not is_blank(text):
            self.post_message(self.Submitted(text, urgent))
            self.load_message("")

    def action_want(self, act: str) -> None:
        """Ask for something that the text alone cannot do."""
        self.post_message(self.Wanted(act))

    def action_newline(self) -> None:
        """Break the line."""
        self._replace_via_keyboard("\n", *self.selection)

    def action_target(self, step: int) -> None:
        """Ask for the next or previous target; while a name is offered, take it or go back."""
        if self.offers:
            if step > 0:
                self._take(self._offers[self._picked or 0])
            else:
                self._pick(-1)
            return
        self.post_message(self.TargetStepped(step))

    def action_up(self) -> None:
        """A row up; from the first row, the message sent before."""
        if self.offers:
            self._pick(-1)
        elif self._row() == 0:
            self._recall(-1)
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        """A row down; from the last row, back towards what was being typed."""
        if self.offers:
            self._pick(1)
        elif self._row() == self.wrapped_document.height - 1:
            self._recall(1)
        else:
            self.action_cursor_down()

    # -- names behind an @

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What may stand behind the `@` before the cursor, as of this moment."""
        row, column = self.cursor_location
        now = (self.text, (row, column))
        if now != self._offered_for:
            self._offered_for = now
            line = self.document.get_line(row)[:column]
            lines = self.text.split("\n")[:row] if "@" in line else []
            found = self.complete("\n".join([*lines, line])) if "@" in line else ()
            if not found:
                self._dismissed = False
            found = () if self._dismissed else found
            if found != self._offers:
                self._offers, self._picked = found, None
                self.post_message(self.Offered(found, None))
        return self._offers

    def _pick(self, step: int) -> None:
        count = len(self._offers)
        before = (-1 if step > 0 else count) if self._picked is None else self._picked
        self._picked = (before + step) % count
        self.post_message(self.Offered(self._offers, self._picked))

    def _take(self, offer: Offer) -> None:
        """Write a name behind the `@`, and a space, so that the sentence goes on."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        begin = line.rindex("@", 0, column) + 1
        gap = "" if line[column : column + 1].isspace() else " "
        result = self._replace_via_keyboard(offer.written + gap, (row, begin), (row, column))
        if result is not None:
            self.move_cursor(result.end_location)

    def close_offers(self) -> bool:
        """Take the list away until another `@` is written; False where there is none."""
        if not self.offers:
            return False
        self._offers, self._picked, self._dismissed = (), None, True
        self.post_message(self.Offered((), None))
        return True

    @on(TextArea.SelectionChanged)
    @on(TextArea.Changed)
    def _moved(self) -> None:
        _ = self.offers

    def _row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y

    def _recall(self, step: int) -> None:
        """Walk through the sent messages; what was being typed waits at the end."""
        if not self.sent or (self._place is None and step > 0):
            return
        if self._place is None:
            self._typed = self.message
            place = len(self.sent)
        else:
            place = self._place
        place += step
        if place < 0:
            return
        text = self.sent[place] if place < len(self.sent) else self._typed
        self.load_message(text)
        self._place = place if place < len(self.sent) else None

    async def _on_paste(self, event: events.Paste) -> None:
        """Take pasted text without its control characters; a long one becomes a mark."""
        event.stop()
        event.prevent_default()
        text = self._folded(normalise_message(event.text))
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    async def _on_key(self, event: events.Key) -> None:
        """Run the entry's own keys in the order in which they came.

        Textual runs bindings after the event has bubbled up, by when later letters of a burst
        (tmux send-keys, a slow line) have been inserted: Enter would send them too.
        """
        active = self.screen.active_bindings.get(event.key)
        if active is None:
            return
        if active.binding.id == "back" and self.close_offers():
            event.stop()
        elif active.node is self:
            event.stop()
            event.prevent_default()
            await self.run_action(active.binding.action)
