"""What may stand behind the `@` that is being written: projects, their aliases, their lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isola_core.attribution.addressing import open_mark, written
from isola_core.model import Project
from isola_core.text import name_key

OFFERS: Final = 5


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to go on: `written` replaces what stands behind the `@`."""

    written: str
    project: str
    lane: str = ""


@dataclass(frozen=True, slots=True)
class _Spelling:
    key: str
    written: str
    project: str


class Completion:
    """Offers for these projects and the lanes that are known of them."""

    def __init__(self, projects: Iterable[Project], lanes: Mapping[str, Sequence[str]]) -> None:
        self._lanes = lanes
        self._spellings: list[_Spelling] = []
        for project in projects:
            for name in (project.name, *project.aliases, project.id):
                if (way := written(name)) is not None:
                    self._spellings.append(_Spelling(name_key(name), way, project.id))

    def offers(self, before: str) -> tuple[Offer, ...]:
        """What the text before the cursor may go on with, best first; often nothing."""
        if "@" not in before or (body := open_mark(before)) is None:
            return ()
        name, slash, lane = body.rpartition("/")
        if slash:
            return self._lane_offers(name, lane.lower())
        return self._project_offers(name_key(body))

    def _project_offers(self, wanted: str) -> tuple[Offer, ...]:
        best: dict[str, tuple[int, int, _Spelling]] = {}
        for place, each in enumerate(self._spellings):
            rank = _rank(wanted, each.key)
            if rank is not None and (rank, place) < best.get(each.project, (9, 0))[:2]:
                best[each.project] = (rank, place, each)
        found = [each for _, _, each in sorted(best.values(), key=lambda each: each[:2])]
        if len(found) == 1 and found[0].key == wanted:
            return ()
        return tuple(Offer(each.written, each.project) for each in found[:OFFERS])

    def _lane_offers(self, name: str, lane: str) -> tuple[Offer, ...]:
        key = name_key(name)
        project = next((each.project for each in self._spellings if each.key == key), None)
        lanes = self._lanes.get(project, ()) if project is not None else ()
        found = [each for each in lanes if _rank(lane, each) is not None and each != lane]
        found.sort(key=lambda each: _rank(lane, each) or 0)
        return tuple(Offer(f"{name}/{each}", project or "", each) for each in found[:OFFERS])


def _rank(wanted: str, key: str) -> int | None:
    """How well a name fits, 0 best: it begins so, holds it, holds its letters in order."""
    if key.startswith(wanted):
        return 0
    if wanted in key:
        return 1
    letters = iter(key)
    return 2 if all(letter in letters for letter in wanted) else None
