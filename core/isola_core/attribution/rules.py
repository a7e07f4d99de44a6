"""Stages 1 and 2: who is named, who is only referred to, what says nothing of its project."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from isola_core.attribution.context import RoutingContext
from isola_core.attribution.lexicon import MENTION, Lexicon, squeeze
from isola_core.attribution.names import Mention, NameIndex, clip, find_mentions
from isola_core.attribution.words import singular
from isola_core.model import Attribution, Candidate, Stage, Target
from isola_core.text import fold, safe_label

TARGET: Final = 0.99
NAMED: Final = 0.96
REFERENCE: Final = 0.96
CONFIRMATION: Final = 0.98
CONTINUATION: Final = 0.95
"""Confidences of the rules: fixed, not calibrated yet, all at or above the default `auto_at`."""

NAMES: Final = "names"
"""What an explanation calls the judge where names alone decided."""

_COMMON_FROM: Final = 5
"""Messages of other projects that must hold a name before it counts as their plain word."""

_LOW_SIGNAL_CHARS: Final = 300

_AND: Final = re.compile(r"\s*(?:,|，|、|/|&|\band\b|\bor\b|和|与|跟|及|或)\s*(?:the\s+)?")


@dataclass(frozen=True, slots=True)
class Reading:
    """What the names in a text say. Project ids, in order of appearance, in one group each.

    `targets` are addressed in so many words, `named` stand as proof, `weak` may be ordinary words,
    `referenced` are only mentioned, `negated` are said not to be meant.
    """

    text: str
    targets: tuple[str, ...]
    named: tuple[str, ...]
    weak: tuple[str, ...]
    referenced: tuple[str, ...]
    negated: tuple[str, ...]
    new_project: bool

    @property
    def mentions_any(self) -> bool:
        """Whether any project's name stands in the text."""
        return bool(self.targets or self.named or self.weak or self.referenced or self.negated)


def read(text: str, context: RoutingContext, index: NameIndex, lexicon: Lexicon) -> Reading:
    """Find the names in a message and sort them by what the words around them say."""
    raw = clip(text.replace(MENTION, " "))
    folded = squeeze(fold(raw))
    mentions = find_mentions(
        raw, folded, index, lambda project: _is_plain_word(project, context, index)
    )
    masked, places = _mask(folded, mentions)
    new_project = lexicon.new_project.match(masked) is not None
    if not mentions:
        return Reading(masked, (), (), (), (), (), new_project)
    groups: dict[str, dict[str, None]] = {
        group: {} for group in ("targets", "named", "weak", "referenced", "negated")
    }
    for mention, group in zip(mentions, _groups(masked, mentions, places, lexicon), strict=True):
        groups[group].update(dict.fromkeys(mention.projects))
    seen: set[str] = set()
    sorted_out: dict[str, tuple[str, ...]] = {}
    for group in ("targets", "referenced", "negated", "named", "weak"):
        sorted_out[group] = tuple(each for each in groups[group] if each not in seen)
        seen.update(groups[group])
    return Reading(masked, new_project=new_project, **sorted_out)


def _is_plain_word(project: str, context: RoutingContext, index: NameIndex) -> bool:
    """Whether a project's name is more a word of other projects' messages than of its own."""
    word = singular(fold(index.by_id[project].name))
    own = others = 0
    for each, counts in context.counts.items():
        count = max(0, counts.words.get(word, 0))
        if each == project:
            own = count
        else:
            others += count
    return others >= _COMMON_FROM and others > own


def _mask(text: str, mentions: tuple[Mention, ...]) -> tuple[str, list[int]]:
    """The text with each whole mention replaced by `MENTION`, and where each stands (-1: not)."""
    pieces: list[str] = []
    places: list[int] = []
    length = at = 0
    for mention in mentions:
        if not mention.whole:
            places.append(-1)
            continue
        piece = text[at : mention.start]
        places.append(length + len(piece))
        pieces += (piece, MENTION)
        length += len(piece) + 1
        at = mention.end
    pieces.append(text[at:])
    return "".join(pieces), places


def _groups(
    masked: str, mentions: tuple[Mention, ...], places: list[int], lexicon: Lexicon
) -> list[str]:
    negated = lexicon.negated.mentions(masked)
    referenced = lexicon.reference.mentions(masked) - lexicon.not_reference.mentions(masked)
    targets = lexicon.target.mentions(masked)
    groups: list[str] = []
    before = -1
    for mention, place in zip(mentions, places, strict=True):
        joined = before >= 0 and _AND.fullmatch(masked, before + 1, max(place, before + 1))
        if place < 0:
            group = "weak"
        elif place in negated:
            group = "negated"
        elif place in referenced or (joined and groups[-1] == "referenced"):
            group = "referenced"
        elif place in targets:
            group = "targets"
        else:
            group = "named" if mention.proof else "weak"
        groups.append(group)
        before = place
    return groups


def is_low_signal(text: str, lexicon: Lexicon) -> bool:
    """Whether a text is only a confirmation, thanks or a continuation: nothing to remember."""
    folded = fold(text[: _LOW_SIGNAL_CHARS + 1])
    return lexicon.is_confirmation(folded) or lexicon.is_continuation(folded)


def decide_by_rules(
    reading: Reading, context: RoutingContext, index: NameIndex, lexicon: Lexicon
) -> Attribution | None:
    """What stages 1 and 2 and the names alone say; None where only judgement can tell.

    An attribution without target is a question for a person, its candidates the open ones.
    """
    if len(reading.targets) == 1:
        return _named(reading, reading.targets[0], TARGET, index)
    if len(reading.targets) > 1:
        return _several(reading, reading.targets, index)
    if reading.new_project:
        return _new_project(reading, index)
    if reading.referenced:
        return _referring(reading, context, index)
    if not reading.mentions_any:
        return _low_signal(reading.text, context, index, lexicon)
    if len(reading.named) == 1:
        return _named(reading, reading.named[0], NAMED, index)
    return _several(reading, reading.named, index) if reading.named else None


def _named(reading: Reading, project: str, confidence: float, index: NameIndex) -> Attribution:
    others = tuple(each for each in (*reading.referenced, *reading.named) if each != project)
    reason = f"the message names {_label(project, index)}"
    if reading.referenced:
        stage, judge = Stage.REFERENCE, ""
        reason += f" and only refers to {_labels(reading.referenced, index)}"
    else:
        stage, judge = Stage.JUDGEMENT, NAMES
        if others:
            reason += f" as its target; {_labels(others, index)} is only mentioned"
    return Attribution(
        stage=stage,
        confidence=confidence,
        reason=reason,
        target=Target(project),
        automatic=True,
        candidates=(Candidate(project, confidence, reason),),
        referenced=others,
        judge=judge,
    )


def _several(reading: Reading, projects: tuple[str, ...], index: NameIndex) -> Attribution:
    share = 1 / (len(projects) + 1)
    return Attribution(
        stage=Stage.JUDGEMENT,
        confidence=share,
        reason=f"the message names {_labels(projects, index)}; which one is it for?",
        candidates=tuple(Candidate(each, share, "named in the message") for each in projects),
        referenced=reading.referenced,
        judge=NAMES,
    )


def _new_project(reading: Reading, index: NameIndex) -> Attribution:
    mentioned = tuple(dict.fromkeys((*reading.referenced, *reading.named)))
    reason = "the message asks for a new project"
    if mentioned:
        reason += f"; {_labels(mentioned, index)} is only mentioned"
    return Attribution(
        stage=Stage.JUDGEMENT,
        confidence=0.0,
        reason=reason,
        candidates=tuple(Candidate(each, 0.0, "named in the message") for each in mentioned),
        referenced=mentioned,
        judge=NAMES,
        new_project=True,
    )


def _referring(reading: Reading, context: RoutingContext, index: NameIndex) -> Attribution | None:
    referred = _labels(reading.referenced, index)
    if len(reading.named) == 1:
        return _named(reading, reading.named[0], REFERENCE, index)
    if reading.named:
        return _several(reading, reading.named, index)
    current = context.current if context.current in index.by_id else None
    if current is None:
        return Attribution(
            stage=Stage.REFERENCE,
            confidence=0.0,
            reason=f"the message only refers to {referred}, and no project is current",
            referenced=reading.referenced,
        )
    if current in reading.referenced or current in reading.negated:
        return None
    reason = f"the message refers to {referred}; the conversation is in {_label(current, index)}"
    return Attribution(
        stage=Stage.REFERENCE,
        confidence=REFERENCE,
        reason=reason,
        target=Target(current),
        automatic=True,
        candidates=(Candidate(current, REFERENCE, reason),),
        referenced=reading.referenced,
    )


def _low_signal(
    text: str, context: RoutingContext, index: NameIndex, lexicon: Lexicon
) -> Attribution | None:
    if lexicon.is_confirmation(text):
        confidence, kind = CONFIRMATION, "a short answer"
    elif lexicon.is_continuation(text):
        confidence, kind = CONTINUATION, "a continuation"
    else:
        return None
    current = context.current if context.current in index.by_id else None
    asking = tuple(each for each in dict.fromkeys(context.asking) if each in index.by_id)
    visible = context.visible if context.visible in index.by_id else None
    rivals: dict[str, str] = {}
    if asking and current not in asking:
        rivals.update(dict.fromkeys(asking, "its agent waits for an answer"))
    if visible is not None and visible != current:
        rivals.setdefault(visible, "its pane is in view")
    if current is not None and not rivals:
        reason = f"{kind}: it belongs to the conversation's last project, {_label(current, index)}"
        return Attribution(
            stage=Stage.LOW_SIGNAL,
            confidence=confidence,
            reason=reason,
            target=Target(current),
            automatic=True,
            candidates=(Candidate(current, confidence, reason),),
        )
    if current is not None:
        rivals = {current: "the conversation's last project"} | rivals
    share = 1 / (len(rivals) + 1) if rivals else 0.0
    where = (
        f"it may belong to {_labels(tuple(rivals), index)}" if rivals else "no project is current"
    )
    return Attribution(
        stage=Stage.LOW_SIGNAL,
        confidence=share,
        reason=f"{kind}, and {where}",
        candidates=tuple(Candidate(each, share, why) for each, why in rivals.items()),
    )


def _label(project: str, index: NameIndex) -> str:
    found = index.by_id.get(project)
    return safe_label(found.name, 40) if found else safe_label(project, 40)


def _labels(projects: tuple[str, ...], index: NameIndex) -> str:
    labels = [_label(project, index) for project in projects[:4]]
    return " and ".join((", ".join(labels[:-1]), labels[-1])) if len(labels) > 1 else labels[0]
