"""Going from place to place: the feed, a session's pane, a hit of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isola_core.model import Target
from isola_tui.screens.go_to import GoTo
from isola_tui.screens.search import Found, SearchScreen

if TYPE_CHECKING:
    from isola_tui.screens.home import HomeScreen


class Going:
    """The ways between the views of one home screen."""

    def __init__(self, home: HomeScreen) -> None:
        self._home = home

    def to(self, target: Target | None, decision: str | None = None) -> None:
        """Show a session's pane, or the feed; at its end or around one decision."""
        home = self._home

        async def show() -> None:
            if target is None:
                await home.viewing.home(decision)
            else:
                await home.viewing.open(target, decision)
            home.composer.visible = home.pane_project
            home.composer.again()

        home.run_worker(show(), group="view", exit_on_error=False)

    async def toggle(self) -> None:
        """Open the pane of the message that is meant; from a pane, go back to the feed.

        Where nothing is selected, the target of the text that is being typed is meant first.
        """
        home = self._home
        view, aimed = home.viewing.meant(), home.composer.aim.target
        if home.viewing.target is not None:
            self.to(None)
        elif home.viewing.selected is None and aimed is not None:
            self.to(aimed)
        elif view is not None and view.project is not None:
            selected = view.id if home.viewing.selected else None
            self.to(Target(view.project, view.lane), selected)
        else:
            await self.choose()

    def to_number(self, number: int) -> None:
        """Open the pane of a project by its place in the list; the same key goes back."""
        home = self._home
        listed = home.board.listed()
        if number <= len(listed):
            target = Target(listed[number - 1].id)
            self.to(None if home.viewing.target == target else target)

    async def choose(self) -> None:
        """Choose where to go: the feed, a project's session, one of its lanes."""
        home = self._home
        await home.viewing.find_panes()

        def chosen(where: Target | str | None) -> None:
            if isinstance(where, Target):
                self.to(where)
            elif where == "feed":
                self.to(None)

        board = home.board
        unread = board.unread_counts()
        screen = GoTo(home.viewing.panes, home.presentation, board.activities(), unread)
        home.app.push_screen(screen, chosen)

    def search(self) -> None:
        """Search everything that was said, and go to the hit."""
        home = self._home

        def chosen(found: Found | None) -> None:
            if found is None:
                return
            view = found.view
            in_feed = found.in_feed or view.project is None
            self.to(None if in_feed else Target(view.project or "", view.lane), view.id)

        home.app.push_screen(SearchScreen(home.runtime, home.presentation), chosen)
