"""The local judge: which project's words are these? Needs no key and sends nothing anywhere."""

from __future__ import annotations

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.words import WordCounts
from isola_core.model import Candidate

__all__ = ["WordCounts", "judge_locally"]


def judge_locally(text: str, context: RoutingContext) -> tuple[Candidate, ...]:
    """Every listed project with its confidence, best first."""
    listed = [project for project in context.projects if project.listed]
    ranked = sorted(listed, key=lambda project: project.id != context.current)
    return tuple(Candidate(project.id, 1 / (len(listed) + 1), "no evidence") for project in ranked)
