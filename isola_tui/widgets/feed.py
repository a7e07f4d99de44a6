"""The feed: every message in time order, its target, its window, its reply; cards among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from isola_core.model import DecisionState, DeliveryState
from isola_tui.board import Choice, Item
from isola_tui.drawing.decision import body, headline
from isola_tui.presentation import Presentation

DEAF_MS: Final = 500
"""How long a new card takes no answer: the key was meant for something else."""


class FeedItem(Widget):
    """One decision. A waiting one can take the keyboard and is answered by a letter."""

    @dataclass
    class Answered(Message):
        """A card was answered."""

        decision: str
        choice: Choice

    @dataclass
    class Left(Message):
        """A card gave the keyboard back without an answer."""

    def __init__(self, item: Item, presentation: Presentation, clock: Callable[[], int]) -> None:
        super().__init__(id=item.view.id)
        self.item = item
        self._presentation = presentation
        self._clock = clock
        self._asked_at = clock()
        self._body: tuple[object, list[Content]] = (None, [])
        self._mark()

    @property
    def deaf(self) -> bool:
        """Whether the card is too new, or has changed too recently, to be answered."""
        return self._clock() - self._asked_at < DEAF_MS

    def show(self, item: Item, presentation: Presentation) -> None:
        """Take in a new state; draws only when something has changed."""
        if item == self.item and presentation is self._presentation:
            return
        if item.choices != self.item.choices:
            self._asked_at = self._clock()
        self.item = item
        self._presentation = presentation
        self._mark()
        before = len(self._body[1])
        self.refresh(layout=len(self._lines(self.content_size.width)) != before)

    def _mark(self) -> None:
        view = self.item.view
        waiting = view.state is DecisionState.WAITING_CONFIRMATION
        tentative = view.state is DecisionState.TENTATIVE
        self.can_focus = waiting
        self.set_class(waiting, "-waiting")
        self.set_class(tentative, "-tentative")
        self.set_class(tentative and view.delivery is DeliveryState.FAILED, "-failed")
        self.set_class(tentative and view.delivery is DeliveryState.UNKNOWN, "-unknown")
        self.set_class(self.item.selected, "-selected")

    def _lines(self, width: int) -> list[Content]:
        """What stands below the headline; a second that passes changes nothing of it."""
        still = replace(self.item, now=0, selected=False)
        key = (still, width, id(self._presentation))
        if self._body[0] != key:
            self._body = (key, body(self._presentation, still, width))
        return self._body[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as the decision needs at this width."""
        return 1 + len(self._lines(width)) if width else 0

    def render(self) -> Content:
        """Draw it for the width that it has."""
        width, now = self.content_size.width, self.item.now or self._clock()
        head = headline(self._presentation, self.item, width, now)
        return Content("\n").join([head, *self._lines(width)])

    def on_key(self, event: events.Key) -> None:
        """Answer a card by its letter; everything else is the screen's."""
        if event.key == "escape":
            event.stop()
            self.post_message(self.Left())
            return
        choice = next((each for each in self.item.choices if each.letter == event.character), None)
        if choice is not None:
            event.stop()
            if not self.deaf:
                self.post_message(self.Answered(self.item.view.id, choice))


class Feed(VerticalScroll, can_focus=False):
    """All of them, newest below; it stays at the end until the person scrolls."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(id="feed")
        self._clock = clock
        self._items: dict[str, FeedItem] = {}

    def compose(self) -> ComposeResult:
        """What stands there while nothing was sent yet."""
        yield Static(id="welcome", markup=False)

    def on_mount(self) -> None:
        """Follow the newest message."""
        self.anchor()

    def item(self, decision: str) -> FeedItem | None:
        """The widget of a decision."""
        return self._items.get(decision)

    def show(self, items: Sequence[Item], presentation: Presentation, welcome: Content) -> None:
        """Bring the feed up to date: new items are added, changed ones drawn again."""
        note = self.query_one("#welcome", Static)
        note.display = not items
        if not items:
            note.update(welcome)
        new: list[FeedItem] = []
        wanted = {item.view.id for item in items}
        for gone in [each for each in self._items if each not in wanted]:
            self._items.pop(gone).remove()
        for item in items:
            known = self._items.get(item.view.id)
            if known is None:
                known = self._items[item.view.id] = FeedItem(item, presentation, self._clock)
                new.append(known)
            else:
                known.show(item, presentation)
        if new:
            self.mount_all(new)

    def reveal(self, decision: str) -> None:
        """Scroll a decision into view."""
        if (found := self._items.get(decision)) is not None:
            self.scroll_to_widget(found, animate=False, immediate=True)

    def follow(self) -> None:
        """Go back to the newest message and stay there."""
        self.anchor()
