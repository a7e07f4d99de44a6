"""Handling messages from the home screen: which act is meant, its dialogs, and what it came to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from isola_core.errors import IsolaError, TextNeeded
from isola_core.model import (
    ACTIVE_DECISIONS,
    DecisionState,
    DecisionView,
    DeliveryState,
    Project,
    Target,
)
from isola_tui.lines import one_line
from isola_tui.screens.acts import Done
from isola_tui.screens.choose import ChooseProject, options
from isola_tui.screens.edit_waiting import EditWaiting
from isola_tui.screens.menu import MessageMenu
from isola_tui.screens.project_form import ProjectForm
from isola_tui.screens.why import WhyScreen
from isola_tui.widgets.notice import Tone

if TYPE_CHECKING:
    from isola_tui.board import Choice
    from isola_tui.screens.home import HomeScreen

LOG = logging.getLogger("isola.screen")


class Handling:
    """The acts' logic for one home screen."""

    def __init__(self, home: HomeScreen) -> None:
        self._home = home
        self._corrected: tuple[str, ...] = ()
        """What the last correction of several made, so that it is undone as one."""

    def hint(self, key: str, /, **values: object) -> None:
        """Say something that is no result."""
        home = self._home
        home.notice.say(home.presentation.texts(f"notice.{key}", **values), Tone.HINT)

    # -- which message, which act

    def menu(self) -> None:
        """Show what can be done with the message."""
        home = self._home
        if (view := home.viewing.meant()) is None:
            self.hint("nothing_selected")
            return

        def chosen(name: str | None) -> None:
            if name is not None:
                self.act_on(name, view)

        home.app.push_screen(MessageMenu(view, home.presentation), chosen)

    def act(self, name: str) -> None:
        """Do something with the marked messages, the selected one, or the newest one."""
        home = self._home
        if name == "correct" and (marked := home.viewing.marked_views()):
            self._correct(marked)
        elif name == "undo" and home.viewing.selected is None and self._undoable():
            self.do(home.acts.undo_all(self._undoable()))
        elif (view := home.viewing.meant()) is None:
            self.hint("nothing_selected")
        else:
            self.act_on(name, view)

    def act_on(self, name: str, view: DecisionView) -> None:
        """Do something with one message."""
        home, acts = self._home, self._home.acts
        match name:
            case "fold":
                home.viewing.opened ^= {view.id}
                home.draw()
            case "mark":
                self.mark(view)
            case "pane":
                home.going.to(Target(view.project, view.lane) if view.project else None, view.id)
            case "why":
                why = WhyScreen(view, home.board, home.presentation, home.runtime)
                home.app.push_screen(why)
            case "edit":
                self._edit(view)
            case "correct" if view.state is DecisionState.WAITING_CONFIRMATION:
                home.needs.go_to(view)
            case "correct":
                self._correct([view])
            case "hold" | "release":
                self.do(acts.hold(view))
            case _:
                act: Callable[[str], Coroutine[Any, Any, Done]] = getattr(acts, name)
                self.do(act(view.id))

    def mark(self, view: DecisionView | None = None) -> None:
        """Mark a message for being corrected together with others, or take its mark away."""
        home = self._home
        meant = view or home.viewing.meant()
        if meant is None or meant.project is None or meant.state not in ACTIVE_DECISIONS:
            self.hint("nothing_to_mark")
            return
        home.viewing.selected = meant.id
        count = home.viewing.mark()
        keys = home.presentation.keys
        if count:
            said = home.presentation.texts.count(
                "notice.marked", count, correct=keys.get("correct", ""), back=keys.get("back", "")
            )
            home.notice.say(said, Tone.HINT)
        else:
            home.notice.clear()

    # -- dialogs

    async def _moved(self, view: DecisionView, target: Target) -> Done:
        """Correct one message; a text that was sent unstored and is gone is asked for."""
        home = self._home
        try:
            return await home.acts.correct(view.id, target)
        except TextNeeded:
            asked = EditWaiting(view, home.presentation, again=True)
            text = await home.app.push_screen_wait(asked)
            if text is None:
                raise
            return await home.acts.correct(view.id, target, text)

    def _correct(self, views: Sequence[DecisionView]) -> None:
        home = self._home
        here = {each.project for each in views}
        found = options(home.board, views[0], keep_own=len(here) > 1)
        if not found:
            self.hint("only_project", key=home.presentation.keys.get("new_project", ""))
            return

        def chosen(project: str | None) -> None:
            if project is None:
                return
            target = Target(project)
            if len(views) == 1 and not home.viewing.marked:
                self.do(self._moved(views[0], target))
                return
            home.viewing.unmark()
            moving = [each.id for each in views if each.project != project]
            self.do(home.acts.correct_all(moving, target, skipped=len(views) - len(moving)))

        home.app.push_screen(
            ChooseProject("choose.correct", views[0], found, home.presentation, len(views)), chosen
        )

    def _edit(self, view: DecisionView) -> None:
        home = self._home
        if view.delivery is not DeliveryState.PENDING or view.message.masked:
            self.hint("not_waiting")
            return

        def edited(text: str | None) -> None:
            if text is not None and text != view.message.text:
                self.do(home.acts.edit(view.id, text), kept=text)

        home.app.push_screen(EditWaiting(view, home.presentation), edited)

    def answer_card(self, decision: str, choice: Choice) -> None:
        """Do what a card's answer says."""
        home = self._home
        view = home.viewing.view(decision)
        if view is None:
            return
        match choice.letter:
            case "n":
                self.do(home.acts.withdraw(view.id))
            case "p":
                self.new_project(view.id)
            case "o":
                self._choose_for(view)
            case _ if choice.project is not None:
                self.do(home.acts.confirm(view.id, Target(choice.project)))

    def _choose_for(self, view: DecisionView) -> None:
        home = self._home

        def chosen(project: str | None) -> None:
            if project is not None:
                self.do(home.acts.confirm(view.id, Target(project)))

        found = options(home.board, view)
        home.app.push_screen(ChooseProject("choose.answer", view, found, home.presentation), chosen)

    def new_project(self, decision: str | None = None) -> None:
        """Register a project; `decision` is the card that it answers at once."""
        home = self._home

        def registered(project: Project | None) -> None:
            if project is None:
                return
            name = one_line(project.name, 60)
            home.notice.say(home.presentation.texts("notice.registered", project=name))
            if decision is not None:
                self.do(home.acts.confirm(decision, Target(project.id)))

        home.app.push_screen(ProjectForm(home.runtime.projects, home.presentation), registered)

    # -- running an act

    def do(self, act: Awaitable[Done], *, kept: str | None = None) -> None:
        """Run an act beside the typing, and tell what it came to.

        `kept` is a text that goes into the entry where the act is refused.
        """
        home = self._home

        async def run() -> None:
            try:
                done = await act
            except IsolaError as error:
                home.notice.say(error.message, Tone.REFUSED)
            except Exception as error:
                LOG.exception("an act failed")
                log = str(home.runtime.paths.state_dir / "isola.log")
                said = home.presentation.texts(
                    "notice.unexpected", error=type(error).__name__, log=log
                )
                home.notice.say(said, Tone.REFUSED)
            else:
                home.notice.say(done.said)
                if done.text is not None:
                    home.entry.put_back(done.text)
                self._corrected = done.steps
                home.aftermath.follow(done)
                return
            if kept is not None:
                home.entry.put_back(kept)

        home.run_worker(run(), group="acts", exit_on_error=False)

    def _undoable(self) -> list[str]:
        """The last correction of several, as long as none of it was changed since."""
        views = [self._home.viewing.view(each) for each in self._corrected]
        if len(views) < 2 or any(view is None for view in views):
            return []
        if any(view and view.state is not DecisionState.TENTATIVE for view in views):
            return []
        return list(self._corrected)
