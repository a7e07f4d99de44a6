"""The pipeline from a message to a project, cheapest stage first.

Stage 0 reads `@project`, stages 1 and 2 are rules over names and short answers, stage 3 is a judge:
the local one, and a configured external one where that is unsure. Whatever goes wrong on the way
becomes a question to the person, never a guess.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import Final

from isola_core.attribution.addressing import addressed
from isola_core.attribution.context import Addressed, RoutingContext
from isola_core.attribution.lexicon import Lexicon, load_lexicon
from isola_core.attribution.local import LOCAL, judge_locally
from isola_core.attribution.names import NameIndex, index_names
from isola_core.attribution.rules import decide_by_rules, read
from isola_core.attribution.words import MAX_CHARS, WordCounts
from isola_core.errors import JudgeError
from isola_core.model import Attribution, Candidate, Stage, Target
from isola_core.ports import Judgement, JudgeModel, JudgeQuestion
from isola_core.secrets import mask
from isola_core.text import safe_label

__all__ = ["Addressed", "Router", "RoutingContext", "WordCounts"]

_LOG: Final = logging.getLogger(__name__)

_RECENT: Final = 6
_RECENT_CHARS: Final = 500
_QUESTION_CHARS: Final = 4_000
"""What an external judge gets to see of the conversation and of the message."""

_PROPOSE_FROM: Final = 0.7
"""Below this confidence nothing is proposed: a card with candidates instead.

Well above the share of messages that follow the one before: "the same as last time" alone is not
enough to be sent somewhere by an Enter.
"""

_CANDIDATES: Final = 8


class Router:
    """Decides where messages go. May be used from several threads at once."""

    def __init__(
        self,
        judge: JudgeModel | None = None,
        local: bool = True,
        lexicon: Lexicon | None = None,
    ) -> None:
        """`judge` is asked where the stages before it are unsure; `local` adds the local one."""
        self._judge = judge
        self._local = local
        self._lexicon = lexicon or load_lexicon()
        self._index = index_names((), self._lexicon)

    def addressed(self, text: str, context: RoutingContext) -> Addressed:
        """Stage 0: the targets that the text names with `@`, and what is to be delivered."""
        return addressed(text, self._index_of(context).keys)

    def preview(self, text: str, context: RoutingContext) -> Attribution:
        """Stages 0 to 3 with what is in memory: no I/O, never raises.

        Only the first `MAX_CHARS` characters count beyond stage 0. Without a target it is a
        question to the person; `reason` says why.
        """
        started = time.perf_counter()
        try:
            found = self._explicit(text, context) or self._attribute(text, context)
        except Exception as error:
            found = _failed(error)
        return replace(found, latency_ms=(time.perf_counter() - started) * 1_000)

    def needs_judge(self, preview: Attribution) -> bool:
        """Whether `decide` asks the external judge after this preview.

        Not where names, a short answer or the person's own words settle what can be known.
        """
        return (
            self._judge is not None
            and preview.stage in (Stage.JUDGEMENT, Stage.REFERENCE)
            and not preview.automatic
            and not preview.new_project
            and (preview.target is None or preview.judge == LOCAL)
        )

    async def decide(self, text: str, context: RoutingContext) -> Attribution:
        """`preview`, and the external judge's answer where that is unsure. Never raises.

        A judge that is late, down or talks nonsense gives an attribution without target that says
        so and keeps the local candidates.
        """
        started = time.perf_counter()
        preview = self.preview(text, context)
        judge = self._judge
        if judge is None or not self.needs_judge(preview) or not self._index_of(context).listed:
            return preview
        try:
            judgement = await judge.judge(self._question(text, context))
            found = self._merge(preview, judgement, context, judge.name)
        except JudgeError as error:
            found = _unsure(preview, safe_label(error.message, 300), judge.name)
        except Exception as error:
            _LOG.warning("the judge %s failed with %s", judge.name, type(error).__name__)
            reason = f"the judge failed ({type(error).__name__}); please choose the project"
            found = _unsure(preview, reason, judge.name)
        return replace(found, latency_ms=(time.perf_counter() - started) * 1_000)

    def _index_of(self, context: RoutingContext) -> NameIndex:
        index = self._index
        if index.projects is not context.projects and index.projects != context.projects:
            index = self._index = index_names(context.projects, self._lexicon)
        return index

    def _explicit(self, text: str, context: RoutingContext) -> Attribution | None:
        if "@" not in text:
            return None
        index = self._index_of(context)
        targets = addressed(text, index.keys).targets
        if not targets:
            return None
        candidates = tuple(Candidate(each.project, 1.0, "addressed with @") for each in targets)
        if len(targets) == 1:
            return Attribution(
                stage=Stage.EXPLICIT,
                confidence=1.0,
                reason="addressed with @",
                target=targets[0],
                automatic=True,
                candidates=candidates,
            )
        return Attribution(
            stage=Stage.EXPLICIT,
            confidence=1.0,
            reason=f"addressed to {len(targets)} targets: one message for each",
            candidates=candidates,
        )

    def _attribute(self, text: str, context: RoutingContext) -> Attribution:
        text = text[:MAX_CHARS]
        index = self._index_of(context)
        if not index.listed:
            return Attribution(Stage.JUDGEMENT, 0.0, "no project is registered yet")
        reading = read(text, context, index, self._lexicon)
        decided = decide_by_rules(reading, context, index, self._lexicon)
        judged: tuple[Candidate, ...] = ()
        if self._local:
            judged = judge_locally(text, reading, context, index, self._lexicon)
        if decided is None:
            decided = replace(self._proposal(judged), referenced=reading.referenced)
        else:
            decided = _with_runners_up(decided, judged)
        return self._within_limits(decided, context, index)

    def _proposal(self, judged: tuple[Candidate, ...]) -> Attribution:
        if not judged:
            return Attribution(Stage.JUDGEMENT, 0.0, "nothing but a judge or a person can tell")
        best = judged[0]
        sure = best.confidence >= _PROPOSE_FROM
        return Attribution(
            stage=Stage.JUDGEMENT,
            confidence=best.confidence,
            reason=best.reason if sure else f"no project stands out; the nearest: {best.reason}",
            target=Target(best.project) if sure else None,
            candidates=judged[:_CANDIDATES],
            judge=LOCAL,
        )

    def _within_limits(
        self, found: Attribution, context: RoutingContext, index: NameIndex
    ) -> Attribution:
        """Automatic only from `auto_at` on, and never for a protected or an unlisted project."""
        if found.target is None:
            return replace(found, automatic=False) if found.automatic else found
        project = index.by_id.get(found.target.project)
        if project is None or not project.listed:
            return replace(found, target=None, automatic=False)
        if project.protected and found.automatic:
            reason = f"{found.reason}; it is protected, so you confirm it"
            return replace(found, automatic=False, reason=reason)
        if found.confidence < context.auto_at:
            return replace(found, automatic=False)
        return found

    def _question(self, text: str, context: RoutingContext) -> JudgeQuestion:
        index = self._index_of(context)
        return JudgeQuestion(
            text=mask(text[:_QUESTION_CHARS]),
            projects=index.listed,
            recent=tuple(
                (project, mask(said[:_RECENT_CHARS]))
                for project, said in context.recent[-_RECENT:]
                if project in index.by_id
            ),
            current=context.current if context.current in index.by_id else None,
        )

    def _merge(
        self, preview: Attribution, judgement: Judgement, context: RoutingContext, judge: str
    ) -> Attribution:
        """The judge's answer as an attribution. Raises `JudgeError` for an impossible answer."""
        index = self._index_of(context)
        listed = {project.id for project in index.listed}
        for each in judgement.candidates:
            if each.project not in listed:
                raise JudgeError("the judge named a project that is not registered")
            if not (math.isfinite(each.confidence) and 0.0 <= each.confidence <= 1.0):
                raise JudgeError("the judge gave a confidence that is no probability")
        if judgement.new_project or not judgement.candidates:
            reason = judgement.reason or (
                "the judge sees a new project" if judgement.new_project else "the judge is unsure"
            )
            found = _unsure(preview, safe_label(reason, 300), judge)
            return replace(found, new_project=judgement.new_project)
        ranked = tuple(sorted(judgement.candidates, key=lambda each: -each.confidence))
        best = ranked[0]
        found = Attribution(
            stage=Stage.JUDGEMENT,
            confidence=best.confidence,
            reason=safe_label(best.reason or judgement.reason, 300) or f"the judge {judge} says so",
            target=Target(best.project) if best.confidence >= _PROPOSE_FROM else None,
            automatic=judgement.decides and best.confidence >= context.auto_at,
            candidates=ranked,
            referenced=preview.referenced,
            judge=judge,
        )
        return self._within_limits(_with_runners_up(found, preview.candidates), context, index)


def _with_runners_up(found: Attribution, others: tuple[Candidate, ...]) -> Attribution:
    """Append what the local judge ranks behind; the parts stay within what is left of certainty."""
    have = {each.project for each in found.candidates}
    left = max(0.0, 1.0 - sum(each.confidence for each in found.candidates))
    behind = [each for each in others if each.project not in have]
    total = sum(each.confidence for each in behind)
    scale = min(1.0, left / total) if total > 0 else 0.0
    scaled = tuple(replace(each, confidence=each.confidence * scale) for each in behind)
    return replace(found, candidates=(found.candidates + scaled)[:_CANDIDATES])


def _unsure(preview: Attribution, reason: str, judge: str) -> Attribution:
    """A card: no target, the reason, and the candidates that were there before."""
    return replace(
        preview,
        stage=Stage.JUDGEMENT,
        target=None,
        automatic=False,
        reason=reason,
        judge=judge,
    )


def _failed(error: Exception) -> Attribution:
    _LOG.warning("attribution failed with %s", type(error).__name__)
    reason = f"attribution failed ({type(error).__name__}); please choose the project"
    return Attribution(Stage.JUDGEMENT, 0.0, reason)
