"""The home screen: one entry, the feed of everything, projects and decisions beside it.

The screen lays out and routes keys. What is shown lives in `Board`, how it looks in
`presentation`, what an act does in `acts`, and what changes from outside arrives by the watcher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer

from isola_core.model import Target
from isola_tui.board import Board
from isola_tui.presentation import Presentation
from isola_tui.screens.acts import Acts, Done
from isola_tui.screens.aftermath import Aftermath
from isola_tui.screens.composing import Composer
from isola_tui.screens.forever import run_forever
from isola_tui.screens.going import Going
from isola_tui.screens.handling import Handling
from isola_tui.screens.needs import Needs
from isola_tui.screens.send_as import send_another_way
from isola_tui.screens.showing import counts_down, key_names, open_questions
from isola_tui.screens.viewing import Viewing
from isola_tui.screens.watcher import Watcher
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.feed import Feed, FeedItem
from isola_tui.widgets.keyline import KeyLine
from isola_tui.widgets.notice import Notice, Tone
from isola_tui.widgets.offers import Offers
from isola_tui.widgets.pane import Pane
from isola_tui.widgets.panels import DecisionsPanel, ProjectPicked, ProjectsLine, ProjectsPanel
from isola_tui.widgets.questions import QuestionCard, Questions

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

SECOND_S: Final = 1.0
FEW_WINDOWS: Final = 8
"""More windows than this count down every two seconds: an idle screen costs next to nothing."""


class HomeScreen(Screen[None]):
    """Home. `runtime` does the work; `present` makes the current `Presentation`."""

    CSS_PATH = "home.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - Textual's own

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "answer", "Answer", id="answer"),
        Binding("ctrl+r", "act('correct')", "Correct", id="correct"),
        Binding("ctrl+o", "menu", "Message", id="menu"),
        Binding("ctrl+n", "new_project", "New project", id="new_project"),
        Binding("ctrl+f", "act('fold')", "Open or fold", id="fold"),
        Binding("f2", "act('why')", "Why", id="why"),
        Binding("ctrl+right_square_bracket", "pane", "Session", id="pane"),
        Binding("ctrl+backslash,alt+0", "go_to", "Go to", id="go_to"),
        Binding("ctrl+underscore,ctrl+slash", "search", "Search", id="search"),
        Binding("ctrl+circumflex_accent,ctrl+6,alt+m", "act('mark')", "Mark", id="mark"),
        Binding("alt+e", "act('edit')", "Change a waiting one", id="edit"),
        *(
            Binding(f"alt+{digit}", f"pane_of({digit})", f"Session {digit}", id=f"pane_{digit}")
            for digit in range(1, 10)
        ),
        Binding("f3,ctrl+up", "select(-1)", "Message before", id="previous"),
        Binding("f4,ctrl+down", "select(1)", "Message after", id="next"),
        Binding("f5", "act('commit')", "Commit", id="commit"),
        Binding("f6", "act('hold')", "Hold", id="hold"),
        Binding("f7", "act('undo')", "Undo", id="undo"),
        Binding("f8", "act('withdraw')", "Take back", id="withdraw"),
        Binding("f9", "act('stop')", "Stop", id="stop"),
        Binding("ctrl+y", "act('resend')", "Send again", id="resend"),
        Binding("f12", "act('settle')", "It did arrive", id="settle"),
        Binding("pageup", "scroll_feed(-1)", "Scroll up", id="scroll_up"),
        Binding("pagedown", "scroll_feed(1)", "Scroll down", id="scroll_down"),
        Binding("escape", "back", "Back", id="back"),
    ]

    def __init__(
        self,
        runtime: Runtime,
        conversation: str,
        present: Callable[[Board], Presentation],
    ) -> None:
        super().__init__()
        self.runtime = runtime
        self.conversation = conversation
        self.board = Board()
        self.presentation = present(self.board)
        self.acts = Acts(runtime, lambda: self.presentation)
        self.composer = Composer(self, runtime, conversation, self.board)
        self.composer.presentation = self.presentation
        self._present = present
        self._watcher = Watcher(runtime, conversation, self.board, self._changed)
        self.viewing = Viewing(self, runtime, conversation, self.board, self._watcher, self.draw)
        self.going = Going(self)
        self.handling = Handling(self)
        self.needs = Needs(self)
        self.aftermath = Aftermath(self)
        self._countdown: Timer | None = None
        self._pause_s = 0.0
        self._live_due = False
        self._ready = False

    # -- layout and life

    def compose(self) -> ComposeResult:
        """Panes, then what needs attention, then the entry."""
        clock = self.runtime.clock.now
        with Horizontal(id="panes"):
            yield ProjectsPanel()
            yield Feed(clock)
            yield Pane(clock)
            yield DecisionsPanel()
        yield Questions(clock)
        yield ProjectsLine()
        yield Notice()
        yield Offers()
        yield Entry()
        yield KeyLine()

    async def on_mount(self) -> None:
        """Load what is stored, bring the draft back, then follow every change."""
        await self._watcher.load()
        self._ready = True
        self._changed(True)
        await self.composer.restore()
        self.entry.complete = self.composer.offers
        self.entry.focus()
        self.runtime.dispatcher.live.listeners.append(self._heard)
        follow = run_forever(self._watcher.follow, self.tell_failure)
        self.run_worker(follow, group="watch", exit_on_error=False)

    def on_unmount(self) -> None:
        """Stop listening."""
        if self._heard in (listeners := self.runtime.dispatcher.live.listeners):
            listeners.remove(self._heard)

    @property
    def entry(self) -> Entry:
        """The entry."""
        return self.query_one(Entry)

    @property
    def notice(self) -> Notice:
        """The notice above it."""
        return self.query_one(Notice)

    @property
    def feed(self) -> Feed:
        """The feed."""
        return self.query_one("#feed", Feed)

    # -- what arrives from outside

    def _changed(self, projects: bool) -> None:
        """The board has changed; `projects`: names, order or number of projects too."""
        if not self._ready:
            return
        if projects:
            self.presentation = self.composer.presentation = self._present(self.board)
            self.composer.again()
        self.entry.sent = self.board.sent(self.conversation)
        self.viewing.take_arrivals()
        self.draw()
        self.aftermath.look()

    def _heard(self) -> None:
        """Something happened inside a turn; many such events become one drawing."""
        if not self._live_due and self.is_attached:
            self._live_due = True
            self.set_timer(0.08, self._draw_live)

    def _draw_live(self) -> None:
        self._live_due = False
        self.board.questions = open_questions(self.runtime.dispatcher.live)
        self.draw()

    # -- drawing

    def draw(self) -> None:
        """Bring every widget up to date; each draws only what has changed."""
        if not self._ready or not self.is_attached:
            return
        draw, board, now = self.presentation, self.board, self.runtime.clock.now()
        self._keep_focus()
        self.composer.board_changed()
        focused = self.focused
        self.viewing.draw(draw, now)
        views = list(board.decisions.values())
        activities, unread = board.activities(), board.unread_counts()
        self.query_one(ProjectsPanel).show(
            draw, board.listed(), activities, unread, board.waiting(), self.pane_project
        )
        self.query_one(ProjectsLine).show(draw, activities, unread, self.pane_project)
        self.query_one(DecisionsPanel).show(draw, views, now)
        self.query_one(Questions).show(board.questions, draw)
        names = key_names(board, answering=isinstance(focused, FeedItem | QuestionCard))
        pairs = [(draw.keys.get(each, ""), draw.texts(f"short.{each}")) for each in names]
        self.query_one(KeyLine).show(pairs)
        self._count_down(sum(counts_down(view, now) for view in views))

    def _keep_focus(self) -> None:
        """A card that was answered elsewhere gives the keyboard back to the entry alone."""
        focused = self.focused
        match focused:
            case FeedItem():
                waits = focused.item.view.id in {each.id for each in self.board.cards()}
            case QuestionCard():
                waits = focused.asked in self.board.questions
            case _:
                waits = focused is not None
        if not waits:
            self.set_focus(self.entry)

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _focus_moved(self) -> None:
        self.call_after_refresh(self.draw)

    def _count_down(self, windows: int) -> None:
        """One timer, and only while a window is running; many windows are drawn less often."""
        pause_s = (SECOND_S if windows <= FEW_WINDOWS else 2 * SECOND_S) if windows else 0.0
        if pause_s == self._pause_s:
            return
        self._pause_s = pause_s
        if self._countdown is not None:
            self._countdown.stop()
        self._countdown = self.set_interval(pause_s, self.draw) if pause_s else None

    # -- typing and sending

    @on(Entry.Changed)
    def _typed(self, event: Entry.Changed) -> None:
        self.composer.typed(event.message)

    @on(Entry.TargetStepped)
    def _step_target(self, event: Entry.TargetStepped) -> None:
        self.composer.step(event.step)

    @on(Entry.Submitted)
    async def _submitted(self, event: Entry.Submitted) -> None:
        if await self.composer.submit(event.text, urgent=event.urgent):
            self.viewing.select(None)
            self.viewing.feed.follow()

    @on(Entry.Wanted)
    def _wanted(self, event: Entry.Wanted) -> None:
        send_another_way(self, self.composer, event.act)

    @on(Entry.Offered)
    def _offered(self, event: Entry.Offered) -> None:
        self.query_one(Offers).show(self.presentation, event.offers, event.picked)

    # -- what is looked at

    @property
    def pane_project(self) -> str | None:
        """The project whose pane is open."""
        return self.viewing.target.project if self.viewing.target else None

    async def action_pane(self) -> None:
        """Open the pane of the message that is meant; from a pane, go back to the feed."""
        await self.going.toggle()

    def action_pane_of(self, number: int) -> None:
        """Open the pane of a project by its place in the list."""
        self.going.to_number(number)

    @on(ProjectPicked)
    def _picked(self, event: ProjectPicked) -> None:
        self.going.to(Target(event.project))

    async def action_go_to(self) -> None:
        """Choose where to go."""
        await self.going.choose()

    def action_search(self) -> None:
        """Search everything that was said."""
        self.going.search()

    @on(Feed.Wanted)
    def _more_wanted(self, event: Feed.Wanted) -> None:
        if (reading := self.viewing.want(event)) is not None:
            self.run_worker(reading, group="page", exit_on_error=False)

    @on(Feed.AtEnd)
    def _at_end(self, event: Feed.AtEnd) -> None:
        self.viewing.at_end(event.feed)

    @on(Feed.Moved)
    def _moved(self) -> None:
        self.viewing.look()

    def action_select(self, step: int) -> None:
        """Select the message before or after."""
        self.viewing.step(step)

    # -- acts, cards and questions

    def action_menu(self) -> None:
        """Show what can be done with the message."""
        self.handling.menu()

    def action_act(self, name: str) -> None:
        """Do something with the marked messages, the selected one, or the newest one."""
        self.handling.act(name)

    def action_answer(self) -> None:
        """Go to the next thing that needs the person."""
        self.needs.next()

    def do(self, act: Awaitable[Done]) -> None:
        """Run an act beside the typing, and tell what it came to."""
        self.handling.do(act)

    @on(FeedItem.Answered)
    def _card_answered(self, event: FeedItem.Answered) -> None:
        self.handling.answer_card(event.decision, event.choice)
        self._left()

    @on(QuestionCard.Answered)
    def _question_answered(self, event: QuestionCard.Answered) -> None:
        async def answer() -> Done:
            asked = event.asked
            await self.runtime.dispatcher.answer(asked.session, asked.question.id, event.choice)
            return Done(self.presentation.texts("notice.answered"))

        self.do(answer())
        self._left()

    @on(FeedItem.Left)
    @on(QuestionCard.Left)
    def _left(self) -> None:
        self.entry.focus()

    def action_new_project(self) -> None:
        """Register a project."""
        self.handling.new_project()

    # -- the rest

    def action_scroll_feed(self, pages: int) -> None:
        """Scroll what is in view while the entry keeps the keyboard."""
        feed = self.viewing.feed
        if pages < 0:
            feed.scroll_page_up(animate=False)
        else:
            feed.scroll_page_down(animate=False)
        feed.call_after_refresh(feed.ask_for_more, older=pages < 0)

    def action_back(self) -> None:
        """One step back: the marks, the selection, the hand-picked target, the pane, the notice."""
        viewing = self.viewing
        if viewing.unmark():
            self.notice.clear()
        elif viewing.selected is not None:
            viewing.select(None)
        elif self.composer.release():
            pass
        elif viewing.target is not None or not viewing.feed.at_end:
            self.going.to(None)
        else:
            self.notice.clear()

    def tell_failure(self, reason: str) -> None:
        """Say that a part of the program failed and was started again."""
        if self.is_attached:
            said = self.presentation.texts("notice.stopped_part", error=reason)
            self.notice.say(said, Tone.REFUSED)
