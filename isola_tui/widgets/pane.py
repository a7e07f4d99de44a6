"""A pane: the conversation of one session, its replies rendered, what waits for it below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownStream

from isola_core.model import ACTIVE_DECISIONS, DecisionView
from isola_tui.board import Item
from isola_tui.drawing.panes import Heading, heading, queue_lines
from isola_tui.lines import plain
from isola_tui.presentation import Presentation
from isola_tui.widgets.feed import Feed, FeedItem, Row

REPLY_CHARACTERS: Final = 20_000
"""Of a reply that is rendered; opened, it is rendered up to `OPENED_CHARACTERS`."""

OPENED_CHARACTERS: Final = 100_000


class Reply(Markdown):
    """A reply, rendered; while it grows, only what is new is parsed."""

    def __init__(self) -> None:
        super().__init__(open_links=False)
        self._shown = ""
        self._stream: MarkdownStream | None = None

    def show(self, text: str, *, growing: bool) -> None:
        """Render a reply; `growing`: more of it will come."""
        self.display = bool(text)
        if text == self._shown and (growing or self._stream is None):
            return
        if growing and self._shown and text.startswith(self._shown):
            self._grow(text[len(self._shown) :])
        elif growing and not self._shown:
            self._grow(text)
        elif text != self._shown:
            self._end_stream()
            self.call_next(self.update, text)
        else:
            self._end_stream()
        self._shown = text

    def _grow(self, more: str) -> None:
        if self._stream is None:
            self._stream = self.get_stream(self)
        self.call_next(self._stream.write, more)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self.call_next(self._stream.stop)
            self._stream = None

    async def on_unmount(self) -> None:
        """Let the stream's task end."""
        if self._stream is not None:
            await self._stream.stop()

    @on(Markdown.LinkClicked)
    def _link(self, event: Markdown.LinkClicked) -> None:
        """A model's link is never opened from here; it goes to the clipboard."""
        event.stop()
        self.app.copy_to_clipboard(plain(event.href))


class Turn(Vertical):
    """One message of the person and the reply to it."""

    def __init__(self, item: Item, presentation: Presentation, clock: Callable[[], int]) -> None:
        super().__init__()
        self.message = FeedItem(item, presentation, clock)
        self.reply = Reply()
        self._item = item
        self._presentation = presentation

    def compose(self) -> ComposeResult:
        """The message, then the reply."""
        yield self.message
        yield self.reply

    def on_mount(self) -> None:
        """Render what is there already."""
        self._render_reply()

    def show(self, item: Item, presentation: Presentation) -> None:
        """Take in a new state."""
        self._item = item
        self._presentation = presentation
        self.message.show(item, presentation)
        if self.is_mounted:
            self._render_reply()

    def _render_reply(self) -> None:
        view, item = self._item.view, self._item
        if view.state not in ACTIVE_DECISIONS:
            self.reply.show("", growing=False)
            return
        text = view.reply or item.partial
        limit = OPENED_CHARACTERS if item.opened else REPLY_CHARACTERS
        if view.reply and len(text) > limit:
            more = self._presentation.keys.get("fold", "")
            text = f"{text[:limit]}\n\n…\n\n{self._presentation.texts('pane.cut', key=more)}"
        self.reply.show(plain(text), growing=not view.reply)


def turn_row(item: Item, presentation: Presentation, clock: Callable[[], int]) -> Row:
    """The pane's row: the message, and the reply rendered."""
    turn = Turn(item, presentation, clock)
    return Row(turn, turn.message, turn.show)


class PaneHeading(Widget):
    """The line that says whose session this is."""

    def __init__(self) -> None:
        super().__init__(id="pane-heading")
        self._shown: tuple[Presentation, Heading] | None = None

    def show(self, presentation: Presentation, told: Heading) -> None:
        """Draw it; nothing happens when it stands there already."""
        if (presentation, told) != self._shown:
            self._shown = (presentation, told)
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row."""
        return 1

    def render(self) -> Content:
        """The line, cut where it must be."""
        if self._shown is None:
            return Content.empty()
        return heading(*self._shown, self.content_size.width)


class Queue(Widget):
    """The messages that wait for the session; not there without any."""

    def __init__(self) -> None:
        super().__init__(id="queue")
        self._shown: tuple[Presentation, tuple[DecisionView, ...], str | None] | None = None
        self.display = False

    def show(
        self, presentation: Presentation, views: Sequence[DecisionView], selected: str | None
    ) -> None:
        """Draw these."""
        shown = (presentation, tuple(views), selected)
        if shown != self._shown:
            self._shown = shown
            self.display = bool(views)
            self.refresh(layout=True)

    def _lines(self, width: int) -> list[Content]:
        return queue_lines(*self._shown, width) if self._shown else []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as the queue needs."""
        return len(self._lines(width)) if width else 0

    def render(self) -> Content:
        """The rows."""
        return Content("\n").join(self._lines(self.content_size.width))


class Pane(Vertical):
    """Header, conversation, queue. It is hidden while the feed is shown."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(id="pane")
        self.turns = Feed(clock, turn_row, "turns")
        self.display = False

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        yield PaneHeading()
        yield self.turns
        yield Queue()

    def show(
        self,
        presentation: Presentation,
        told: Heading,
        items: Sequence[Item],
        queue: Sequence[DecisionView],
        selected: str | None,
        *,
        older: bool,
    ) -> None:
        """Bring the pane up to date."""
        self.query_one(PaneHeading).show(presentation, told)
        note = Content(presentation.texts("pane.empty", project=presentation.aimed(told.target)))
        self.turns.show(items, presentation, note, older=older, newer=told.newer)
        self.query_one(Queue).show(presentation, queue, selected)
