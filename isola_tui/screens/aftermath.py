"""What a correction left behind: told again once the wrong session has really forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isola_core.model import DecisionView, RewindState
from isola_tui.lines import one_line
from isola_tui.screens.acts import Done

if TYPE_CHECKING:
    from isola_tui.screens.home import HomeScreen

NOTE_CHARACTERS = 400


class Aftermath:
    """Follows the rewinds of the last act, as long as its line still stands there."""

    def __init__(self, home: HomeScreen) -> None:
        self._home = home
        self._said = ""
        self._rewinding: tuple[str, ...] = ()

    def follow(self, done: Done) -> None:
        """These rewinds belong to the line that was said."""
        self._said, self._rewinding = done.said, done.rewinding
        self.look()

    def look(self) -> None:
        """Tell of the rewinds once all of them have ended."""
        home = self._home
        if not self._rewinding or home.notice.text != self._said:
            return
        views = [home.viewing.view(each) for each in self._rewinding]
        ended = [each for each in views if each and each.rewind not in (None, RewindState.PENDING)]
        if len(ended) < len(self._rewinding):
            return
        self._rewinding = ()
        said, texts = self._said, home.presentation.texts
        for view in ended:
            name = home.presentation.name(view.project)
            said = said.replace(texts("undone.rewinding", project=name), self._told(view))
        home.notice.say(said)

    def _told(self, view: DecisionView) -> str:
        draw = self._home.presentation
        done = draw.texts(f"item.rewind.{view.rewind}", project=draw.name(view.project))
        note = one_line(view.rewind_note, NOTE_CHARACTERS)
        return f"{done}: {note}" if note else f"{done}."
