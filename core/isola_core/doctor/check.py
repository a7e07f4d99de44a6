"""What a check is, and how checks run: one after the other, and none takes the others down."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from isola_core.errors import IsolaError
from isola_core.secrets import mask
from isola_core.text import safe_label

CHECK_TIMEOUT_S: Final = 20.0
_FOUND_LIMIT: Final = 4000

Answer = TypeVar("Answer")
Supplier = Callable[[], Answer | Awaitable[Answer]]
"""Something another part looks up when a check asks for it; it may raise."""


class CheckStatus(StrEnum):
    """What a check came to. NEED_HUMAN: nothing is broken, but somebody has to decide."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NEED_HUMAN = "need_human"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found; `fix` is a command or, where there is none, one sentence."""

    status: CheckStatus
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `check` is the command by which a person sees the same; `run` only looks."""

    id: str
    title: str
    run: Supplier[Outcome]
    check: str = "isola doctor"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check that ran."""

    id: str
    title: str
    status: CheckStatus
    found: str
    check_command: str
    fix_command: str

    def as_json(self) -> dict[str, str]:
        """The stable keys of `isola doctor --json`."""
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status.value,
            "found": self.found,
            "check": self.check_command,
            "fix": self.fix_command,
        }


async def run_checks(checks: Iterable[Check]) -> tuple[CheckResult, ...]:
    """Run the checks one after the other. Never raises for what a check does."""
    return tuple([await run_check(each) for each in checks])


async def run_check(check: Check) -> CheckResult:
    """Run one check; a crash or a time-out is a failed check."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            outcome = await answer(check.run)
    except TimeoutError:
        outcome = Outcome(CheckStatus.FAIL, f"no answer within {CHECK_TIMEOUT_S:g} seconds")
    except IsolaError as error:
        outcome = Outcome(CheckStatus.FAIL, error.message)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        outcome = Outcome(CheckStatus.FAIL, f"the check itself failed ({said})")
    return CheckResult(
        id=check.id,
        title=check.title,
        status=outcome.status,
        found=safe_label(mask(outcome.found), _FOUND_LIMIT),
        check_command=check.check,
        fix_command=outcome.fix or ("" if outcome.status is CheckStatus.PASS else check.check),
    )


def exit_code(results: Iterable[CheckResult]) -> int:
    """0: all pass. 1: something fails. 2: nothing fails, but a person has to decide something."""
    states = {each.status for each in results}
    if CheckStatus.FAIL in states:
        return 1
    return 2 if CheckStatus.NEED_HUMAN in states else 0


async def answer(supplier: Supplier[Answer]) -> Answer:
    """What the supplier says, at once or after a while."""
    given = supplier()
    if inspect.isawaitable(given):
        answered: Answer = await given
        return answered
    return given
