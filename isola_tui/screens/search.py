"""Searching everything that was said: messages and replies, each hit with its project and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from isola_core.errors import IsolaError
from isola_core.model import ACTIVE_DECISIONS, DecisionView, Target
from isola_tui.lines import MUTED, one_line
from isola_tui.presentation import Presentation

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

HITS: Final = 50
REST_S: Final = 0.15
"""A pause in typing after which the search begins."""

NAME_CELLS: Final = 14
AROUND: Final = 24
"""Characters in front of a hit that is far inside a text."""


@dataclass(frozen=True, slots=True)
class Found:
    """The hit that was chosen; `in_feed`: show it among everything, not in its session."""

    view: DecisionView
    in_feed: bool


class SearchScreen(ModalScreen[Found | None]):
    """Ends with the hit to go to, or None."""

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="search_back"),
        Binding("up,ctrl+p", "step(-1)", "Up", id="search_up"),
        Binding("down,ctrl+n", "step(1)", "Down", id="search_down"),
        Binding("tab", "take(True)", "In the feed", id="search_feed"),
    ]

    def __init__(self, runtime: Runtime, presentation: Presentation) -> None:
        super().__init__()
        self._runtime = runtime
        self._presentation = presentation
        self._hits: list[DecisionView] = []
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        """What is searched, then the hits."""
        texts = self._presentation.texts
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(texts("search.title"))
            dialog.border_subtitle = Content(texts("search.keys"))
            yield Input(placeholder=texts("search.hint"))
            yield Static(classes="label", markup=False)
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Ready to type."""
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_S, self._begin)

    def _begin(self) -> None:
        self._rest = None
        self.run_worker(self._search(self.query_one(Input).value), exclusive=True)

    async def _search(self, wanted: str) -> None:
        texts = self._presentation.texts
        try:
            hits = await self._runtime.service.search(wanted, HITS)
        except IsolaError as error:
            self.query_one(Static).update(Content(error.message))
            return
        found = self.query_one(OptionList)
        same = [each.id for each in hits] == [each.id for each in self._hits]
        place = found.highlighted if same else 0
        self._hits = hits
        found.clear_options()
        found.add_options(
            [Option(self._line(each, wanted), str(place)) for place, each in enumerate(hits)]
        )
        found.highlighted = place if hits else None
        said = texts.count("search.found", len(hits)) if hits else texts("search.nothing")
        if len(hits) == HITS:
            said = texts("search.many", count=HITS)
        self.query_one(Static).update(Content(said if wanted.strip() else ""))

    def _line(self, view: DecisionView, wanted: str) -> Content:
        draw = self._presentation
        time = draw.time(view.created, self._runtime.clock.now()).rjust(11)
        label = draw.aimed(Target(view.project, view.lane)) if view.project else "?"
        ended = view.state not in ACTIVE_DECISIONS
        style = f"strike {MUTED}" if ended else "bold $text-accent"
        name = Content.styled(label, style).truncate(NAME_CELLS, ellipsis=True, pad=True)
        excerpt = _excerpt(view, wanted)
        width = max(20, self.query_one(OptionList).scrollable_content_region.width - 2)
        line = Content.assemble((time, MUTED), "  ", name, "  ", excerpt)
        return line.truncate(width, ellipsis=True)

    def action_step(self, step: int) -> None:
        """Move the highlight; the query keeps the keyboard."""
        found = self.query_one(OptionList)
        if step < 0:
            found.action_cursor_up()
        else:
            found.action_cursor_down()

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        if self._rest is not None:
            self._rest.stop()
            self._rest = None
            await self._search(event.value)
        self.action_take(False)

    def action_take(self, in_feed: bool) -> None:
        """Go to the highlighted hit."""
        place = self.query_one(OptionList).highlighted
        if place is not None and place < len(self._hits):
            self.dismiss(Found(self._hits[place], in_feed))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(Found(self._hits[int(event.option.id or 0)], False))


def _excerpt(view: DecisionView, wanted: str) -> Content:
    """The line that holds what was searched, from shortly before it; else the first line."""
    key = " ".join(wanted.split()).casefold()
    for text, bar in ((view.message.text, ""), (view.reply, "│ ")):
        place = text.casefold().find(key)
        if place < 0:
            continue
        begin = 0 if place <= AROUND * 2 else place - AROUND
        before = one_line(("…" if begin else "") + text[begin:place], 200)
        hit = one_line(text[place : place + len(key)], 200)
        after = one_line(text[place + len(key) : place + 300], 200)
        gaps = [
            " " if text[place - 1 : place].isspace() else "",
            " " if text[place + len(key) : place + len(key) + 1].isspace() else "",
        ]
        return Content.assemble(
            (bar, MUTED), before, gaps[0], (hit, "bold $text-warning"), gaps[1], after
        )
    return Content(one_line(view.message.text, 200))
