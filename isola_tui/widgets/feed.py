"""The feed: every message in time order, its target, its window, its reply; cards among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from isola_core.model import DecisionState, DeliveryState
from isola_tui.board import Choice, Item
from isola_tui.drawing.decision import body, headline
from isola_tui.presentation import Presentation

DEAF_MS: Final = 500
"""How long a new card takes no answer: the key was meant for something else."""


NEAR: Final = 3
"""How many rows from an end count as near it."""


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
        passed = replace(item, now=0) == replace(self.item, now=0)
        second_only = passed and presentation is self._presentation
        self.item = item
        self._presentation = presentation
        if second_only:  # the window's bar stands in the first row
            self.refresh(Region(0, 0, self.size.width, 1))
            return
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


@dataclass(frozen=True, slots=True)
class Row:
    """What stands for one decision: its widget, the message in it, and how it takes in news."""

    widget: Widget
    message: FeedItem
    show: Callable[[Item, Presentation], None]


def plain_row(item: Item, presentation: Presentation, clock: Callable[[], int]) -> Row:
    """The feed's row: the message alone, its reply folded."""
    message = FeedItem(item, presentation, clock)
    return Row(message, message, message.show)


class Feed(VerticalScroll, can_focus=False):
    """Decisions in time order, newest below; it stays at the end until the person scrolls.

    `make` builds a row. What stands above the first or below the last one is out of sight: the
    feed asks for it (`Wanted`) when the person comes near, and keeps what they read in its place.
    """

    @dataclass
    class Wanted(Message):
        """The person is near an end behind which there is more."""

        feed: Feed
        older: bool

    class Moved(Message):
        """Other messages came into view."""

    @dataclass
    class AtEnd(Message):
        """The newest message is in view."""

        feed: Feed

    def __init__(
        self,
        clock: Callable[[], int],
        make: Callable[[Item, Presentation, Callable[[], int]], Row] = plain_row,
        id: str = "feed",
    ) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._make = make
        self._items: dict[str, Row] = {}
        self._older = self._newer = False
        self._revealing: str | None = None

    def compose(self) -> ComposeResult:
        """What stands there while nothing was sent yet, and what tells of older messages."""
        yield Static(classes="welcome", markup=False)
        yield Static(classes="earlier", markup=False)

    def on_mount(self) -> None:
        """Follow the newest message."""
        self.anchor()

    @property
    def follows(self) -> bool:
        """Whether it stays at its end at the next layout."""
        # Textual has no public name for an anchor that was released
        return self.is_anchored and not self._anchor_released

    @property
    def at_end(self) -> bool:
        """Whether the newest message of all is in view."""
        return not self._newer and (self.follows or self.scroll_offset.y >= self.max_scroll_y - 1)

    def in_view(self) -> list[str]:
        """The decisions of which something is in view."""
        top = self.scroll_offset.y
        bottom = top + self.size.height
        regions = {key: row.widget.virtual_region for key, row in self._items.items()}
        return [key for key, each in regions.items() if each.y < bottom and each.bottom > top]

    def item(self, decision: str) -> FeedItem | None:
        """The widget of a decision's message."""
        found = self._items.get(decision)
        return found.message if found else None

    def show(
        self,
        items: Sequence[Item],
        presentation: Presentation,
        welcome: Content,
        *,
        older: bool = False,
        newer: bool = False,
    ) -> None:
        """Bring the feed up to date: new items are added, changed ones drawn again.

        `older` and `newer`: there is more behind that end.
        """
        self._older, self._newer = older, newer
        note = self.query_one(".welcome", Static)
        note.display = not items
        if not items:
            note.update(welcome)
        earlier = self.query_one(".earlier", Static)
        if earlier.display != (older and bool(items)) or not self._items:
            earlier.display = older and bool(items)
            earlier.update(Content(presentation.texts("feed.earlier")))
        wanted = {item.view.id for item in items}
        place = self._place(wanted) if self._items.keys() != wanted else None
        for gone in [each for each in self._items if each not in wanted]:
            self._items.pop(gone).widget.remove()
        fresh = self._take_in(items, presentation)
        if fresh and self._revealing in fresh:
            self.call_after_refresh(self.reveal, self._revealing)
        elif place is not None:
            self.call_after_refresh(self._restore, *place)

    def _take_in(self, items: Sequence[Item], presentation: Presentation) -> set[str]:
        """Show every item in its place; the ids of those that are new."""
        fresh: set[str] = set()
        block: list[Widget] = []
        rows: dict[str, Row] = {}
        for item in items:
            known = self._items.get(item.view.id)
            if known is None:
                known = self._make(item, presentation, self._clock)
                fresh.add(item.view.id)
                block.append(known.widget)
            else:
                known.show(item, presentation)
                if block:
                    self.mount_all(block, before=known.widget)
                    block = []
            rows[item.view.id] = known
        if block:
            self.mount_all(block)
        self._items = rows
        return fresh

    # -- keeping in place, and asking for more

    def _place(self, wanted: Collection[str]) -> tuple[str, int] | None:
        """The topmost message that stays in view, and where it stands; None at the end."""
        if self.at_end:
            return None
        top = self.scroll_offset.y
        for decision, known in self._items.items():
            region = known.widget.virtual_region
            if decision in wanted and region.bottom > top:
                return decision, region.y - top
        return None

    def _restore(self, decision: str, offset: int) -> None:
        if (known := self._items.get(decision)) is not None:
            y = known.widget.virtual_region.y - offset
            self.scroll_to(y=y, animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for more where the person comes near an end."""
        super().watch_scroll_y(old_value, new_value)
        if new_value != old_value:
            self.post_message(self.Moved())
            # a feed that follows its end moves by itself: nobody wants older ones then
            if new_value > old_value or not self.follows:
                self.ask_for_more(older=new_value < old_value)

    def ask_for_more(self, *, older: bool) -> None:
        """Ask for what lies behind an end that is in view."""
        if not self._items:
            return
        if older and self._older and self.scroll_offset.y <= NEAR:
            self.post_message(self.Wanted(self, older=True))
        elif not older and self.scroll_offset.y >= self.max_scroll_y - NEAR:
            newer = self._newer
            self.post_message(self.Wanted(self, older=False) if newer else self.AtEnd(self))

    def reveal(self, decision: str, tries: int = 5) -> None:
        """Scroll a decision into view, as soon as it has its place."""
        known = self._items.get(decision)
        if known is None:
            self._revealing = decision
        elif known.widget.virtual_region.height or not tries:
            self._revealing = None
            self.scroll_to_widget(known.widget, animate=False, immediate=True)
        else:
            self.call_after_refresh(self.reveal, decision, tries - 1)

    def follow(self) -> None:
        """Go back to the newest message and stay there."""
        self._revealing = None
        self.anchor()
