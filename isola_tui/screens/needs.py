"""The next thing that needs the person: a question, a card, a failed or unknown delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isola_core.model import DecisionState, DecisionView, DeliveryState
from isola_tui.widgets.feed import FeedItem
from isola_tui.widgets.questions import QuestionCard, Questions

if TYPE_CHECKING:
    from isola_tui.screens.home import HomeScreen


class Needs:
    """Walks through what needs the person, oldest first: questions, cards, broken deliveries."""

    def __init__(self, home: HomeScreen) -> None:
        self._home = home

    def next(self) -> None:
        """Go to the next one; from the selected one where that is one of them."""
        home = self._home
        cards = home.query_one(Questions).cards()
        waiting: list[QuestionCard | DecisionView] = [
            *cards,
            *home.board.cards(),
            *home.board.failing(),
        ]
        if not waiting:
            home.handling.hint("nothing_needs_you")
            return
        place = self._place(waiting)
        self._go(waiting[place % len(waiting)])

    def _place(self, waiting: list[QuestionCard | DecisionView]) -> int:
        """Behind what has the keyboard or was gone to; else at a selected card; else the first."""
        home = self._home
        focused, selected = home.focused, home.viewing.selected
        for place, each in enumerate(waiting):
            match each:
                case QuestionCard():
                    if each is focused:
                        return place + 1
                case DecisionView():
                    if isinstance(focused, FeedItem) and focused.item.view.id == each.id:
                        return place + 1
        for place, each in enumerate(waiting):
            if isinstance(each, DecisionView) and each.id == selected:
                is_card = each.state is DecisionState.WAITING_CONFIRMATION
                return place if is_card else place + 1
        return 0

    def go_to(self, view: DecisionView) -> None:
        """Go to one card."""
        self._go(view)

    def _go(self, needed: QuestionCard | DecisionView) -> None:
        match needed:
            case QuestionCard():
                self._focus(needed)
            case DecisionView():
                home = self._home
                home.run_worker(self._go_to_item(needed), group="view", exit_on_error=False)

    async def _go_to_item(self, view: DecisionView) -> None:
        home = self._home
        if view.id not in home.viewing.shown():
            await home.viewing.home(view.id)
        is_card = view.state is DecisionState.WAITING_CONFIRMATION
        if is_card:
            home.call_after_refresh(self._focus_item, view.id)
            return
        home.set_focus(home.entry)
        home.viewing.select(view.id)
        keys = home.presentation.keys
        key = "unknown" if view.delivery is DeliveryState.UNKNOWN else "failed"
        said = {each: keys.get(each, "") for each in ("resend", "withdraw", "settle")}
        home.handling.hint(f"needs_{key}", project=home.presentation.name(view.project), **said)

    def _focus_item(self, decision: str) -> None:
        found = self._home.viewing.feed.item(decision)
        if found is not None:
            self._focus(found)

    def _focus(self, card: FeedItem | QuestionCard) -> None:
        home = self._home
        if card.deaf:
            home.handling.hint("just_appeared", key=home.presentation.keys.get("answer", ""))
            return
        card.focus()
        card.scroll_visible(animate=False)
