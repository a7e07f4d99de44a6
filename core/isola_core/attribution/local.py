"""The local judge: whose words are these? Needs no key and sends nothing anywhere.

A first, honest one: naive Bayes over the words of each project's attributed messages, with the
project's name and description counted as if they had been said there, and the conversation's last
projects as prior. "None of them" takes part in the comparison, so that a message without evidence
gets no high confidence. It is not calibrated: its answers are proposals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.lexicon import Lexicon
from isola_core.attribution.names import NameIndex
from isola_core.attribution.rules import Reading
from isola_core.attribution.words import WordCounts, words_of
from isola_core.model import Candidate, Project
from isola_core.text import safe_label

__all__ = ["LOCAL", "WordCounts", "judge_locally"]

LOCAL: Final = "local"

_MAX_WORDS: Final = 48
"""Words of a message that are weighed: bounds the time of one preview."""

# Near the least log loss on streams of commit subjects, with the first day weighed a little more.
_STAY: Final = 0.62
_NONE: Final = 0.04
_SMOOTHING: Final = 12.0
_UNSEEN: Final = 40.0
_PROFILE: Final = 1.5
_TEMPER: Final = 0.7

_NAMED: Final = 3.0
_WEAKLY_NAMED: Final = 1.5
_REFERRED: Final = -1.0
_NEGATED: Final = -4.0


@dataclass(slots=True)
class _Evidence:
    """What was found for one project: a log score, and the words behind it for the explanation."""

    project: Project
    score: float
    said: list[tuple[float, str]]
    described: list[str]


def judge_locally(
    text: str, reading: Reading, context: RoutingContext, index: NameIndex, lexicon: Lexicon
) -> tuple[Candidate, ...]:
    """Every listed project with its probability, best first. They sum to less than one."""
    if not index.listed:
        return ()
    evidence = _priors(context, index)
    _weigh_words(text, evidence, context, index, lexicon)
    for each in evidence:
        each.score += _weight_of_names(each.project.id, reading)
    best = max(max(each.score for each in evidence), math.log(_NONE))
    total = sum(math.exp(each.score - best) for each in evidence) + _NONE * math.exp(-best)
    evidence.sort(key=lambda each: -each.score)
    return tuple(
        Candidate(
            each.project.id,
            math.exp(each.score - best) / total,
            _reason(each, reading, context),
        )
        for each in evidence
    )


def _priors(context: RoutingContext, index: NameIndex) -> list[_Evidence]:
    seen = {project.id: 0.3 for project in index.listed}
    for project, _ in context.recent:
        if project in seen and project != context.current:
            seen[project] += 1.0
    away = 1.0 - _NONE
    stays = context.current in seen
    if stays:
        seen.pop(context.current or "")
        away -= _STAY
    total = sum(seen.values()) or 1.0
    return [
        _Evidence(
            project,
            math.log(
                _STAY
                if stays and project.id == context.current
                else away * seen[project.id] / total
            ),
            [],
            [],
        )
        for project in index.listed
    ]


def _weigh_words(
    text: str,
    evidence: list[_Evidence],
    context: RoutingContext,
    index: NameIndex,
    lexicon: Lexicon,
) -> None:
    """Add each word's log likelihood ratio against all projects together.

    The evidence stands in the order of `index.listed`. A word that no project knows says nothing.
    """
    empty = WordCounts()
    counts = [context.counts.get(each.project.id, empty) for each in evidence]
    messages = [max(0, each.messages) + _PROFILE for each in counts]
    missed = [_TEMPER * math.log(_SMOOTHING / (each + _SMOOTHING)) for each in messages]
    looks = [each.words.get for each in counts]
    everything = sum(messages) + _UNSEEN
    words = [word for word in words_of(text) if word not in lexicon.stop][:_MAX_WORDS]
    known = 0
    for word in words:
        seen = [(at, count) for at, look in enumerate(looks) if (count := look(word, 0)) > 0]
        described = index.described.get(word, ())
        if not seen and not described:
            continue
        known += 1
        weights: dict[int, float] = dict(seen)
        for at in described:
            weights[at] = weights.get(at, 0.0) + _PROFILE
        background = (sum(weights.values()) + 0.5) / everything
        for at, weight in weights.items():
            rate = (weight + _SMOOTHING * background) / (messages[at] + _SMOOTHING)
            gain = _TEMPER * math.log(rate / background)
            each = evidence[at]
            each.score += gain - missed[at]
            if at in described and gain > 0:
                each.described.append(word)
            elif gain > 0.1:
                each.said.append((gain, word))
    for each, miss in zip(evidence, missed, strict=True):
        each.score += known * miss


def _weight_of_names(project: str, reading: Reading) -> float:
    if project in reading.negated:
        return _NEGATED
    if project in reading.targets or project in reading.named:
        return _NAMED
    if project in reading.weak:
        return _WEAKLY_NAMED
    return _REFERRED if project in reading.referenced else 0.0


def _reason(evidence: _Evidence, reading: Reading, context: RoutingContext) -> str:
    """The evidence in plain words, strongest first."""
    project = evidence.project
    parts: list[str] = []
    if project.id in (*reading.targets, *reading.named, *reading.weak):
        parts.append("its name is in the message")
    if project.id in reading.referenced:
        parts.append("the message refers to it")
    if project.id in reading.negated:
        parts.append("the message says that it is not meant")
    said = [word for _, word in sorted(evidence.said, reverse=True)]
    if said:
        parts.append(f"words seen in {safe_label(project.name, 40)}: {_words(said)}")
    if evidence.described:
        parts.append(f"its name or description: {_words(evidence.described)}")
    if project.id == context.current:
        parts.append("your last message went there")
    return "; ".join(parts) or "nothing in the text points to it"


def _words(words: list[str]) -> str:
    return ", ".join(safe_label(word, 24) for word in words[:4])
