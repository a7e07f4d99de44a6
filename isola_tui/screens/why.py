"""Why a message went where it went: everything that is stored about one decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from isola_core.model import Candidate, DecisionState, DecisionView
from isola_tui.board import Board
from isola_tui.lines import MUTED, one_line, plain
from isola_tui.presentation import Presentation
from isola_tui.screens.reading import ReadingScreen

if TYPE_CHECKING:
    from isola_tui.runtime import Runtime

LABEL_CELLS = 14


class WhyScreen(ReadingScreen):
    """The explanation of one decision."""

    def __init__(
        self, view: DecisionView, board: Board, presentation: Presentation, runtime: Runtime
    ) -> None:
        super().__init__(presentation.texts("why.title"), presentation.texts("why.close"))
        self._view = view
        self._board = board
        self._presentation = presentation
        self._runtime = runtime

    async def on_mount(self) -> None:
        """Read what memory came of it, then show all."""
        writes = await self._runtime.service.writes_of(self._view.id)
        lines: list[Content] = []
        for label, value in self._rows(writes):
            head = Content.styled(label, MUTED).truncate(LABEL_CELLS, ellipsis=True, pad=True)
            blank = Content(" " * LABEL_CELLS)
            wrapped = Content(value).wrap(self.columns - LABEL_CELLS) or [Content.empty()]
            lines += [
                Content.assemble(head if place == 0 else blank, each)
                for place, each in enumerate(wrapped)
            ]
        self.write(Content("\n").join(lines))

    def _rows(self, writes: list[tuple[int, str, str]]) -> list[tuple[str, str]]:
        view, draw = self._view, self._presentation
        texts, told = draw.texts, view.attribution
        now = self._runtime.clock.now()
        after = self._board.successor(view.id)
        text = plain(view.message.text)
        if view.message.masked:
            text += f"  ({texts('why.masked')})"
        rows = [
            ("text", text[:400] + ("…" if len(text) > 400 else "")),
            ("target", draw.name(view.project, 80) if view.project else texts("why.unsure")),
            ("state", self._state()),
            ("stage", f"{told.stage}"),
            ("confidence", f"{told.confidence:.2f}"),
            ("reason", one_line(told.reason, 400)),
            ("judge", one_line(told.judge, 60)),
            ("runner_up", self._ranked(told.runner_up)),
            (
                "candidates",
                "\n".join(self._ranked(each) for each in told.candidates),
            ),
            ("referenced", ", ".join(draw.name(each) for each in told.referenced)),
            ("latency", texts("why.milliseconds", count=f"{told.latency_ms:.1f}")),
            ("sent", draw.time(view.created, now)),
            ("changed", draw.time(view.updated, now)),
            ("deadline", self._deadline(now)),
            ("delivery", self._delivery()),
            ("replied", draw.time(view.replied, now) if view.replied else ""),
            ("rewind", f"{view.rewind} {one_line(view.rewind_note, 4_000)}" if view.rewind else ""),
            ("previous", view.previous or ""),
            ("successor", f"{after.id} → {draw.name(after.project)}" if after else ""),
            (
                "memory",
                "\n".join(f"{state} {one_line(result, 120)}" for _, state, result in writes),
            ),
            ("session", view.session or ""),
            ("ids", f"{view.id}  {view.message.id}  {one_line(view.message.conversation, 60)}"),
        ]
        return [(texts(f"why.{label}"), value) for label, value in rows if value]

    def _ranked(self, candidate: Candidate | None) -> str:
        if candidate is None:
            return ""
        name = self._presentation.name(candidate.project)
        return f"{name} {candidate.confidence:.2f}  {one_line(candidate.reason, 120)}".rstrip()

    def _state(self) -> str:
        key = {
            DecisionState.WAITING_CONFIRMATION: "waiting",
            DecisionState.CORRECTED: "corrected",
        }.get(self._view.state, self._view.state.lower())
        after = self._board.successor(self._view.id)
        project = self._presentation.name(after.project if after else None)
        return f"{self._view.state}  {self._presentation.texts(f'state.{key}', project=project)}"

    def _deadline(self, now: int) -> str:
        if self._view.held:
            return self._presentation.texts("why.held")
        if self._view.deadline is None:
            return ""
        return self._presentation.time(self._view.deadline, now)

    def _delivery(self) -> str:
        view = self._view
        if view.delivery is None:
            return ""
        attempt = self._presentation.texts("why.attempt", count=view.attempt)
        return f"{view.delivery}, {attempt}  {one_line(view.delivery_error, 300)}".strip()
