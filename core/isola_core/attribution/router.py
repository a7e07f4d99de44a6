"""The pipeline from a message to a project, cheapest stage first."""

from __future__ import annotations

from isola_core.attribution.context import Addressed, RoutingContext
from isola_core.attribution.local import judge_locally
from isola_core.attribution.rules import addressed, names_of
from isola_core.attribution.words import WordCounts
from isola_core.model import Attribution, Stage
from isola_core.ports import JudgeModel

__all__ = ["Addressed", "Router", "RoutingContext", "WordCounts"]


class Router:
    """Decides where messages go. Holds nothing that changes; safe to use from several threads."""

    def __init__(self, judge: JudgeModel | None = None, local: bool = True) -> None:
        self._judge = judge
        self._local = local

    def addressed(self, text: str, context: RoutingContext) -> Addressed:
        """Stage 0: `@project` and `@project/lane`."""
        return addressed(text, names_of(context.projects))

    def preview(self, text: str, context: RoutingContext) -> Attribution:
        """Stages 0 to 3 with what is in memory. No I/O, never raises."""
        marks = self.addressed(text, context)
        if len(marks.targets) == 1:
            return Attribution(
                Stage.EXPLICIT, 1.0, "you addressed it", marks.targets[0], automatic=True
            )
        candidates = judge_locally(text, context) if self._local else ()
        return Attribution(Stage.JUDGEMENT, 0.0, "unsure", candidates=candidates, judge="local")

    def needs_judge(self, preview: Attribution) -> bool:
        """Whether `decide` would ask the external judge after this preview."""
        return self._judge is not None and not preview.automatic

    async def decide(self, text: str, context: RoutingContext) -> Attribution:
        """`preview`, and the external judge's answer where that is unsure. Never raises."""
        return self.preview(text, context)
