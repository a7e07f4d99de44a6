"""What a bench returns: figures, and targets that are aimed at and reported as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Target:
    """A figure held against its limit; `at_least` where more is better."""

    value: float
    limit: float
    at_least: bool = False

    @property
    def ok(self) -> bool:
        """Whether the limit was kept; NaN never is."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of one bench. Ratios and counts where a machine's speed matters."""

    figures: Mapping[str, float | int | str]
    targets: Mapping[str, Target] = field(default_factory=dict)


Bench: TypeAlias = Callable[[Path | None], Figures]
"""`run(data)` of a bench's module: `data` is the folder of data sets, None if there is none."""


def report(name: str, result: Figures) -> dict[str, object]:
    """The object that `--json` prints."""
    return {
        "name": name,
        "figures": dict(result.figures),
        "targets": {
            each: {"value": target.value, "limit": target.limit, "ok": target.ok}
            for each, target in result.targets.items()
        },
        "ok": all(target.ok for target in result.targets.values()),
    }


def table(name: str, result: Figures) -> str:
    """The same for people."""
    width = max(map(len, (*result.figures, *result.targets)), default=0)
    lines = [name]
    lines += [f"  {key:<{width}}  {_shown(value)}" for key, value in result.figures.items()]
    for key, target in result.targets.items():
        bound = "at least" if target.at_least else "at most"
        verdict = "ok" if target.ok else "MISSED"
        lines.append(
            f"  {key:<{width}}  {_shown(target.value)} ({bound} {_shown(target.limit)}: {verdict})"
        )
    return "\n".join(lines)


def _shown(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
