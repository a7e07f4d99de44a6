"""The home screen: one entry, the feed of everything, projects and decisions beside it.

The screen lays out and routes keys. What is shown lives in `Board`, how it looks in
`presentation`, what an act does in `acts`, and what changes from outside arrives by the watcher.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer

from isola_core.errors import IsolaError
from isola_core.model import DecisionState, DecisionView, Project, Target
from isola_tui.board import Board
from isola_tui.lines import one_line
from isola_tui.presentation import Presentation
from isola_tui.screens.acts import Acts, Done
from isola_tui.screens.choose import ChooseProject, options
from isola_tui.screens.composing import Composer
from isola_tui.screens.forever import run_forever
from isola_tui.screens.menu import MessageMenu
from isola_tui.screens.project_form import ProjectForm
from isola_tui.screens.send_as import send_another_way
from isola_tui.screens.showing import counts_down, items, key_names, open_questions, welcome
from isola_tui.screens.watcher import Watcher
from isola_tui.screens.why import WhyScreen
from isola_tui.widgets.entry import Entry
from isola_tui.widgets.feed import Feed, FeedItem
from isola_tui.widgets.keyline import KeyLine
from isola_tui.widgets.notice import Notice, Tone
from isola_tui.widgets.offers import Offers
from isola_tui.widgets.panels import DecisionsPanel, ProjectsLine, ProjectsPanel
from isola_tui.widgets.questions import QuestionCard, Questions

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

LOG = logging.getLogger("isola.screen")


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
        self._selected: str | None = None
        self._opened: set[str] = set()
        self._countdown: Timer | None = None
        self._live_due = False
        self._ready = False

    # -- layout and life

    def compose(self) -> ComposeResult:
        """Panes, then what needs attention, then the entry."""
        clock = self.runtime.clock.now
        with Horizontal(id="panes"):
            yield ProjectsPanel()
            yield Feed(clock)
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
        return self.query_one(Feed)

    # -- what arrives from outside

    def _changed(self, projects: bool) -> None:
        """The board has changed; `projects`: names, order or number of projects too."""
        if not self._ready:
            return
        if projects:
            self.presentation = self.composer.presentation = self._present(self.board)
            self.composer.again()
        self.entry.sent = self.board.sent(self.conversation)
        self.draw()

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
        shown = items(
            board,
            draw,
            self.runtime.dispatcher.live,
            now,
            selected=self._selected,
            opened=self._opened,
            answering=focused.id if isinstance(focused, FeedItem) else None,
        )
        views = list(board.decisions.values())
        activities = board.activities()
        self.feed.show(shown, draw, welcome(board, draw))
        self.query_one(ProjectsPanel).show(draw, board.listed(), activities)
        self.query_one(ProjectsLine).show(draw, activities)
        self.query_one(DecisionsPanel).show(draw, views, now)
        self.query_one(Questions).show(board.questions, draw)
        names = key_names(board, answering=isinstance(focused, FeedItem | QuestionCard))
        pairs = [(draw.keys.get(each, ""), draw.texts(f"short.{each}")) for each in names]
        self.query_one(KeyLine).show(pairs)
        self._count_down(any(counts_down(view, now) for view in views))

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

    def _count_down(self, wanted: bool) -> None:
        """One timer, and only while a window is running."""
        if wanted and self._countdown is None:
            self._countdown = self.set_interval(1, self.draw)
        elif not wanted and self._countdown is not None:
            self._countdown.stop()
            self._countdown = None

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
            self._select(None)
            self.feed.follow()

    @on(Entry.Wanted)
    def _wanted(self, event: Entry.Wanted) -> None:
        send_another_way(self, self.composer, event.act)

    @on(Entry.Offered)
    def _offered(self, event: Entry.Offered) -> None:
        self.query_one(Offers).show(self.presentation, event.offers, event.picked)

    # -- selecting, and acts on the selected message

    def action_select(self, step: int) -> None:
        """Select the message before or after; past the newest one nothing is selected."""
        ids = list(self.board.decisions)
        if not ids:
            return
        place = ids.index(self._selected) if self._selected in ids else len(ids)
        place = max(0, place + step)
        self._select(ids[place] if place < len(ids) else None)

    def _select(self, decision: str | None) -> None:
        if decision == self._selected:
            return
        self._selected = decision
        self.draw()
        if decision is not None:
            self.feed.reveal(decision)
        else:
            self.feed.follow()

    def _meant(self) -> DecisionView | None:
        if self._selected is not None:
            return self.board.decisions.get(self._selected)
        return self.board.newest(self.conversation)

    def action_menu(self) -> None:
        """Show what can be done with the message."""
        if (view := self._meant()) is None:
            self._hint("nothing_selected")
            return

        def chosen(name: str | None) -> None:
            if name is not None:
                self._act(name, view)

        self.app.push_screen(MessageMenu(view, self.presentation), chosen)

    def action_act(self, name: str) -> None:
        """Do something with the selected message, or with the newest one."""
        if (view := self._meant()) is None:
            self._hint("nothing_selected")
            return
        self._act(name, view)

    def _act(self, name: str, view: DecisionView) -> None:
        acts = self.acts
        match name:
            case "fold":
                self._opened ^= {view.id}
                self.draw()
            case "why":
                self.app.push_screen(WhyScreen(view, self.board, self.presentation, self.runtime))
            case "correct" if view.state is DecisionState.WAITING_CONFIRMATION:
                self._focus_card(view.id)
            case "correct":
                self._correct(view)
            case "hold" | "release":
                self.do(acts.hold(view))
            case _:
                act: Callable[[str], Coroutine[Any, Any, Done]] = getattr(acts, name)
                self.do(act(view.id))

    def _correct(self, view: DecisionView) -> None:
        found = options(self.board, view)
        if not found:
            key = self.presentation.keys.get("new_project", "")
            self._hint("only_project", key=key)
            return

        def chosen(project: str | None) -> None:
            if project is not None:
                self.do(self.acts.correct(view.id, Target(project)))

        self.app.push_screen(
            ChooseProject("choose.correct", view, found, self.presentation), chosen
        )

    def do(self, act: Awaitable[Done]) -> None:
        """Run an act beside the typing, and tell what it came to."""

        async def run() -> None:
            try:
                done = await act
            except IsolaError as error:
                self.notice.say(error.message, Tone.REFUSED)
            except Exception as error:
                LOG.exception("an act failed")
                log = str(self.runtime.paths.state_dir / "isola.log")
                said = self.presentation.texts(
                    "notice.unexpected", error=type(error).__name__, log=log
                )
                self.notice.say(said, Tone.REFUSED)
            else:
                self.notice.say(done.said)
                if done.text is not None:
                    self.entry.put_back(done.text)

        self.run_worker(run(), group="acts", exit_on_error=False)

    def _hint(self, key: str, /, **values: object) -> None:
        self.notice.say(self.presentation.texts(f"notice.{key}", **values), Tone.HINT)

    # -- cards and questions

    def action_answer(self) -> None:
        """Go to the next thing that needs the person: the selected card, else the oldest one."""
        waiting: list[FeedItem | QuestionCard] = list(self.query_one(Questions).cards())
        cards = [self.feed.item(each.id) for each in self.board.cards()]
        waiting += [each for each in cards if each is not None]
        if not waiting:
            self._hint("nothing_needs_you")
            return
        places = {id(each): place for place, each in enumerate(waiting)}
        selected = self.feed.item(self._selected) if self._selected else None
        if id(self.focused) in places:
            card = waiting[(places[id(self.focused)] + 1) % len(waiting)]
        elif selected is not None and id(selected) in places:
            card = selected
        else:
            card = waiting[0]
        if card.deaf:
            self._hint("just_appeared", key=self.presentation.keys.get("answer", ""))
            return
        card.focus()
        card.scroll_visible(animate=False)

    def _focus_card(self, decision: str) -> None:
        self._select(decision)
        self.action_answer()

    @on(FeedItem.Answered)
    def _card_answered(self, event: FeedItem.Answered) -> None:
        choice, view = event.choice, self.board.decisions[event.decision]
        match choice.letter:
            case "n":
                self.do(self.acts.withdraw(view.id))
            case "p":
                self.action_new_project(view.id)
            case "o":
                self._choose_for(view)
            case _ if choice.project is not None:
                self.do(self.acts.confirm(view.id, Target(choice.project)))
        self._left()

    def _choose_for(self, view: DecisionView) -> None:
        def chosen(project: str | None) -> None:
            if project is not None:
                self.do(self.acts.confirm(view.id, Target(project)))

        self.app.push_screen(
            ChooseProject("choose.answer", view, options(self.board, view), self.presentation),
            chosen,
        )

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

    # -- projects

    def action_new_project(self, decision: str | None = None) -> None:
        """Register a project; `decision` is the card that it answers at once."""

        def registered(project: Project | None) -> None:
            if project is None:
                return
            name = one_line(project.name, 60)
            self.notice.say(self.presentation.texts("notice.registered", project=name))
            if decision is not None:
                self.do(self.acts.confirm(decision, Target(project.id)))

        self.app.push_screen(ProjectForm(self.runtime.projects, self.presentation), registered)

    # -- the rest

    def action_scroll_feed(self, pages: int) -> None:
        """Scroll the feed while the entry keeps the keyboard."""
        if pages < 0:
            self.feed.scroll_page_up(animate=False)
        else:
            self.feed.scroll_page_down(animate=False)

    def action_back(self) -> None:
        """One step back: the selection, the hand-picked target, the notice."""
        if self._selected is not None:
            self._select(None)
        elif not self.composer.release():
            self.notice.clear()

    def tell_failure(self, reason: str) -> None:
        """Say that a part of the program failed and was started again."""
        if self.is_attached:
            said = self.presentation.texts("notice.stopped_part", error=reason)
            self.notice.say(said, Tone.REFUSED)
