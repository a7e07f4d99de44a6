"""What the home screen looks at: the feed, or one session's pane; what is selected and marked.

The feed shows the board's newest decisions until the person scrolls past them, then a stretch of
the history. A pane is a stretch of one session's history. Neither holds more than so many, however
long the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from textual.screen import Screen

from isola_core.model import ACTIVE_DECISIONS, DecisionView, Target
from isola_core.store import sessions
from isola_core.store.history import Moves
from isola_tui.board import Activity, Board, activity_of
from isola_tui.drawing.panes import Heading
from isola_tui.history import Stretch
from isola_tui.presentation import Presentation
from isola_tui.screens.showing import items, welcome
from isola_tui.screens.watcher import Watcher
from isola_tui.widgets.feed import Feed, FeedItem
from isola_tui.widgets.pane import Pane

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

SHOWN: Final = 40
"""Of the board's newest decisions, in the feed; older ones are paged. Each is a widget, and the
first frame waits for all of them."""

PAGE: Final = 40
MOST: Final = 160
PANE_PAGE: Final = 8
PANE_MOST: Final = 24
"""Rendered replies are many widgets each."""


class Viewing:
    """The view's logic. `screen` lends its widgets and workers; `changed` draws everything."""

    def __init__(
        self,
        screen: Screen[None],
        runtime: Runtime,
        conversation: str,
        board: Board,
        watcher: Watcher,
        changed: Callable[[], None],
    ) -> None:
        self.selected: str | None = None
        self.marked: dict[str, None] = {}
        self.opened: set[str] = set()
        self.panes: tuple[Target, ...] = ()
        """Every session that there is, and every project, in the projects' order."""
        self._screen = screen
        self._runtime = runtime
        self._conversation = conversation
        self._board = board
        self._watcher = watcher
        self._changed = changed
        self._pane: Stretch | None = None
        self._past: Stretch | None = None
        self._harness = ""
        self._paging = False

    # -- what is in view

    @property
    def target(self) -> Target | None:
        """The session whose pane is open, None while the feed is shown."""
        return self._pane.target if self._pane else None

    @property
    def feed(self) -> Feed:
        """The list that is in view: the feed, or the pane's turns."""
        return self._pane_widget.turns if self._pane else self._screen.query_one("#feed", Feed)

    @property
    def _pane_widget(self) -> Pane:
        return self._screen.query_one(Pane)

    def shown(self) -> dict[str, DecisionView]:
        """The decisions of the view, in the order in which one walks through them."""
        if self._pane is None:
            return dict(self._past.decisions) if self._past else self._newest()
        assert self._pane.target is not None
        waiting = {each.id: each for each in self._board.queue(self._pane.target)}
        turns = {key: each for key, each in self._pane.decisions.items() if key not in waiting}
        return turns | waiting

    def _newest(self) -> dict[str, DecisionView]:
        return dict(list(self._board.decisions.items())[-SHOWN:])

    def view(self, decision: str) -> DecisionView | None:
        """A decision that is shown or waits for something."""
        board = self._board
        places: tuple[Mapping[str, DecisionView], ...] = (
            board.decisions,
            board.unsettled,
            self.shown(),
        )
        return next((each[decision] for each in places if decision in each), None)

    def meant(self) -> DecisionView | None:
        """What a key means: the selected message, else the view's newest one of this terminal."""
        if self.selected is not None:
            return self.view(self.selected)
        if self._pane is None:
            return self._board.newest(self._conversation)
        mine = (
            each
            for each in reversed(self.shown().values())
            if each.message.conversation == self._conversation and each.state in ACTIVE_DECISIONS
        )
        return next(mine, None)

    def marked_views(self) -> list[DecisionView]:
        """The marked messages that still can be corrected, oldest first."""
        found = [view for each in self.marked if (view := self.view(each)) is not None]
        active = [each for each in found if each.state in ACTIVE_DECISIONS and each.project]
        return sorted(active, key=lambda each: each.created)

    # -- opening and closing

    async def open(self, target: Target, decision: str | None = None) -> None:
        """Show a session's pane, at its end or around one decision."""
        stretch = Stretch(self._runtime, target, page=PANE_PAGE, most=PANE_MOST)
        await self._load(stretch, decision)
        self._harness = await self._harness_of(target)
        self._release()
        self._pane = stretch
        self._watcher.stretches.append(stretch)
        self._board.read(target.project) if decision is None else None
        self._show(decision)

    async def home(self, decision: str | None = None) -> None:
        """Show the feed, at its end or around one decision."""
        self._release()
        if decision is not None and decision not in self._newest():
            self._past = Stretch(self._runtime, page=PAGE, most=MOST)
            await self._load(self._past, decision)
            self._watcher.stretches.append(self._past)
        self._show(decision)

    def _show(self, decision: str | None) -> None:
        is_pane = self._pane is not None
        self._screen.query_one("#feed", Feed).display = not is_pane
        self._pane_widget.display = is_pane
        self.selected = decision
        self.feed.follow()
        self._changed()
        if decision is not None:
            self.feed.reveal(decision)

    async def _load(self, stretch: Stretch, decision: str | None) -> None:
        if decision is None:
            await stretch.newest()
        else:
            await stretch.around(decision)

    def _release(self) -> None:
        for stretch in (self._pane, self._past):
            if stretch in self._watcher.stretches and stretch is not None:
                self._watcher.stretches.remove(stretch)
        self._pane = self._past = None

    async def _harness_of(self, target: Target) -> str:
        project = self._board.projects.get(target.project)
        if project is None:
            return ""
        name, _, kind = self._runtime.core.harness_of(project).partition(":")
        return kind if name in ("default", kind, "") else f"{name} ({kind})"

    async def find_panes(self) -> None:
        """Look which sessions there are: every listed project's, and their lanes'."""
        owner, machine = self._runtime.core.owner.id, self._runtime.core.machine
        stored = await self._runtime.store.read(
            lambda tx: sessions.list_sessions(tx, owner, machine)
        )
        lanes: dict[str, list[str]] = {}
        for each in stored:
            if each.ref.lane:
                lanes.setdefault(each.ref.project, []).append(each.ref.lane)
        self.panes = tuple(
            Target(project.id, lane)
            for project in self._board.listed()
            for lane in ("", *sorted(lanes.get(project.id, ())))
        )

    # -- selecting and marking

    def select(self, decision: str | None) -> None:
        """Select a message; None: the newest one is in view again."""
        if decision == self.selected:
            return
        self.selected = decision
        if decision is None and self._past is not None:
            self._release_past()
        self._changed()
        if decision is None:
            self.feed.follow()
        else:
            self.feed.reveal(decision)

    def step(self, step: int) -> None:
        """Select the message before or after; past the newest one nothing is selected."""
        ids = list(self.shown())
        if not ids:
            return
        place = ids.index(self.selected) if self.selected in ids else len(ids)
        if place + step < 0:
            self.feed.ask_for_more(older=True)
        place = max(0, place + step)
        self.select(ids[place] if place < len(ids) else None)

    def mark(self) -> int:
        """Mark the message that is meant, or take its mark away; how many are marked."""
        if (view := self.meant()) is not None:
            if view.id in self.marked:
                del self.marked[view.id]
            else:
                self.marked[view.id] = None
            self._changed()
        return len(self.marked)

    def unmark(self) -> bool:
        """Take all marks away; False without any."""
        found = bool(self.marked)
        self.marked.clear()
        if found:
            self._changed()
        return found

    # -- paging

    def want(self, event: Feed.Wanted) -> Coroutine[Any, Any, None] | None:
        """Read more of the list that is in view; None while that happens already."""
        if self._paging or event.feed is not self.feed:
            return None
        self._paging = True
        return self._read_more(older=event.older)

    async def _read_more(self, *, older: bool) -> None:
        try:
            stretch = self._pane or self._past
            if stretch is None:
                stretch = Stretch(self._runtime, page=PAGE, most=MOST)
                stretch.decisions = self._newest()
                stretch.older = True
                self._past = stretch
                self._watcher.stretches.append(stretch)
            if await (stretch.earlier() if older else stretch.later()):
                self._changed()
        finally:
            self._paging = False

    def at_end(self, feed: Feed) -> None:
        """The newest message came into view."""
        if self.selected is not None or feed is not self.feed or self._pane is not None:
            return
        if self._past is not None and not self._past.newer:
            self._release_past()
            self._changed()

    def _release_past(self) -> None:
        if self._past is not None:
            self._watcher.stretches.remove(self._past)
            self._past = None

    # -- unread marks

    def take_arrivals(self) -> None:
        """Answers that came where nobody looks become unread."""
        board = self._board
        arrived, board.arrived = board.arrived, []
        for view in arrived:
            where = Target(view.project or "", view.lane)
            in_view = self.target in (None, where) and self.feed.at_end
            if view.project is not None and not in_view:
                board.unread.setdefault(view.project, set()).add(view.id)

    def look(self) -> None:
        """What is in view now has been read."""
        if any(self._board.unread.values()) and self._board.see(self.feed.in_view()):
            self._changed()

    # -- drawing

    def draw(self, draw: Presentation, now: int) -> None:
        """Bring the list that is in view up to date."""
        focused = self._screen.focused
        answering = focused.item.view.id if isinstance(focused, FeedItem) else None
        stretch = self._pane or self._past
        views = list((stretch.decisions if stretch else self._newest()).values())
        queue: list[DecisionView] = []
        if self._pane is not None and self._pane.target is not None:
            queue = self._board.queue(self._pane.target)
            waiting = {each.id for each in queue}
            views = [each for each in views if each.id not in waiting]
        shown = items(
            views,
            stretch.moves if stretch else self._moves(),
            draw,
            self._runtime.dispatcher.live,
            now,
            selected=self.selected,
            opened=self.opened,
            answering=answering,
            marked=self.marked,
            bare=self._pane is not None,
        )
        if self._pane is None:
            self.feed.show(
                shown,
                draw,
                welcome(self._board, draw),
                older=stretch.older if stretch else len(views) >= SHOWN,
                newer=stretch.newer if stretch else False,
            )
        else:
            self._pane_widget.show(
                draw,
                self._heading(),
                shown,
                queue,
                self.selected,
                older=self._pane.older,
            )
        self._screen.call_after_refresh(self.look)

    def _moves(self) -> Moves:
        views = self._board.decisions
        return Moves(
            {
                view.id: before.project
                for view in views.values()
                if view.previous and (before := views.get(view.previous)) and before.project
            },
            {
                view.previous: view.project
                for view in views.values()
                if view.previous and view.project
            },
        )

    def _heading(self) -> Heading:
        assert self._pane is not None
        assert self._pane.target is not None
        target, board = self._pane.target, self._board
        session = [each for each in self._pane.decisions.values() if each.project == target.project]
        activity = activity_of(session[-1]) if session else Activity.ASLEEP
        running = {(each.project, each.lane) for each in board.running()}
        if (target.project, target.lane) in running:
            activity = Activity.WORKING
        if any(
            each.project == target.project and self._lane(each.session) == target.lane
            for each in board.questions
        ):
            activity = Activity.NEEDS_YOU
        return Heading(
            target, activity, self._harness, cards=len(board.cards()), newer=self._pane.newer
        )

    def _lane(self, session: str) -> str:
        known = self._runtime.dispatcher.live.sessions.get(session)
        return known.lane if known else ""
