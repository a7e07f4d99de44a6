"""The target line above the text: where Enter would send it, how surely, and what is before it."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from isola_core.model import Attribution
from isola_tui.aim import Aim
from isola_tui.lines import MUTED, muted
from isola_tui.presentation import Presentation

NAMED: Final = 4
"""Targets that are named; further ones are counted."""


def target_line(draw: Presentation, aim: Aim, *, empty: bool) -> Content:
    """What stands above the text while it is typed."""
    texts, back = draw.texts, draw.keys.get("back", "")
    if not any(not each.retired for each in draw.projects.values()):
        return muted(texts("target.none", key=draw.keys.get("new_project", "")))
    if aim.raw:
        return _raw(draw, aim, back)
    tail = muted(f"  {texts('target.reading')}") if aim.partial else Content.empty()
    if aim.chosen is not None:
        said = f"{texts('target.chosen')} · {texts('target.automatic', key=back)}"
        return _by_hand(draw, aim, "→ ", "$text-accent", said) + tail
    if len(aim.targets) > 1:
        return _by_hand(draw, aim, "→ ", "$text-success", texts("target.each")) + tail
    if aim.uses_lock:
        said = texts("target.locked", key=draw.keys.get("lock", ""), back=back)
        return _by_hand(draw, aim, "▣ ", "$text-warning", said) + tail
    attribution = aim.attribution
    if empty or attribution is None:
        return muted(texts("target.empty"))
    if attribution.target is None:
        return _unsure(draw, attribution) + tail
    parts = [
        Content.styled("→ ", "$text-success"),
        Content.styled(f"{draw.aimed(attribution.target)} ", "bold $text-success"),
        Content.styled(f"{attribution.confidence:.2f} ", "$foreground"),
        muted(f"({draw.stage(attribution)}) "),
        _ahead(draw, aim),
    ]
    if (runner_up := attribution.runner_up) is not None:
        parts.append(muted(f"· {draw.name(runner_up.project)} {runner_up.confidence:.2f}"))
    if aim.locked is not None:
        parts.append(muted(f" · {texts('target.unlocked', project=draw.aimed(aim.locked))}"))
    return Content.empty().join([*parts, tail])


def _by_hand(draw: Presentation, aim: Aim, glyph: str, style: str, said: str) -> Content:
    named = [draw.aimed(each) for each in aim.by_hand[:NAMED]]
    more = len(aim.by_hand) - len(named)
    names = " + ".join([*named, *([f"+{more}"] if more else [])])
    return Content.assemble(
        (glyph, style), (f"{names}  ", f"bold {style}"), _ahead(draw, aim), (said, MUTED)
    )


def _raw(draw: Presentation, aim: Aim, back: str) -> Content:
    texts = draw.texts
    if not aim.by_hand:
        said = texts("target.raw_nowhere", key=draw.keys.get("target_next", ""))
        return Content.assemble(("⇒ ? ", "bold $text-error"), (said, "$text-error"))
    return _by_hand(draw, aim, "⇒ ", "$text-error", texts("target.raw", back=back))


def _ahead(draw: Presentation, aim: Aim) -> Content:
    """That the session is busy, before Enter is pressed."""
    if not aim.ahead:
        return Content.empty()
    key = draw.keys.get("urgent", "")
    said = draw.texts("target.ahead", count=aim.ahead, key=key)
    return Content.styled(f"◐ {said}  ", "$text-warning")


def _unsure(draw: Presentation, attribution: Attribution) -> Content:
    parts = [
        Content.styled("→ ? ", "bold $text-warning"),
        Content.styled(draw.texts("target.unsure"), "$text-warning"),
    ]
    parts += [
        muted(f" · {draw.name(each.project)} {each.confidence:.2f}")
        for each in attribution.candidates[:2]
    ]
    return Content.empty().join(parts)
