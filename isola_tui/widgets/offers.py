"""The names that may stand behind the `@`, above the entry; not there where none is offered."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from isola_tui.completion import Offer
from isola_tui.lines import MUTED, muted, one_line
from isola_tui.presentation import Presentation


class Offers(Widget):
    """One line for each offer, best first."""

    def __init__(self) -> None:
        super().__init__(id="offers")
        self.display = False
        self._shown: tuple[Presentation, tuple[Offer, ...], int | None] | None = None

    def show(self, presentation: Presentation, offers: Sequence[Offer], picked: int | None) -> None:
        """Draw these; `picked` is the one that Enter takes, if the person picked one."""
        self._shown = (presentation, tuple(offers), picked)
        self.display = bool(offers)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A row for each, and one that says how."""
        return len(self._shown[1]) + 1 if self._shown else 0

    def render(self) -> Content:
        """The list."""
        if self._shown is None:
            return Content.empty()
        draw, offers, picked = self._shown
        width = self.content_size.width
        column = max((Content(each.written).cell_length for each in offers), default=0)
        lines = []
        for place, each in enumerate(offers):
            here = place == picked
            project = draw.projects.get(each.project)
            name = draw.name(each.project)
            note = f"{name} · " if one_line(each.written, 200) != name else ""
            note += one_line(project.description, 120) if project else ""
            written = Content(one_line(each.written, 200)).truncate(
                min(column, width // 2), pad=True
            )
            line = Content.assemble(
                ("▸ " if here else "  ", "bold $text-accent"),
                ("@", MUTED),
                (written.stylize("bold $text-accent reverse") if here else written),
                "  ",
                (note, MUTED),
            )
            lines.append(line.truncate(width, ellipsis=True))
        take, back = draw.keys.get("target_next", ""), draw.keys.get("back", "")
        how = draw.texts("offers.how", take=take, back=back)
        return Content("\n").join([*lines, muted(how).truncate(width, ellipsis=True)])
