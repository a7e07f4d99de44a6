"""Stage 0: what an `@` means, and what it does not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.attribution.router import Addressed, Router
from isola_core.model import Stage, Target
from tests.core.attribution.scenes import BILLING, PORTAL, SEARCH, context, project

ROUTER = Router()


def marks(text: str) -> tuple[list[str], str]:
    found = ROUTER.addressed(text, context())
    names = {"p1": "billing", "p2": "search", "p3": "docs", "p4": "portal", "p5": "trader"}
    return [
        names[each.project] + ("/" if each.lane else "") + each.lane for each in found.targets
    ], found.text


@pytest.mark.parametrize(
    ("text", "targets", "rest"),
    [
        ("@billing fix the totals", ["billing"], "fix the totals"),
        ("@Billing: fix", ["billing"], "fix"),
        ("@billing, fix", ["billing"], "fix"),
        ("@billing，修复", ["billing"], "修复"),
        ("@billing. Fix it", ["billing"], "Fix it"),
        ("@billing .env is broken", ["billing"], ".env is broken"),
        ("@p1 by id", ["billing"], "by id"),
        ("@bill by alias", ["billing"], "by alias"),
        ("@计费 中文名", ["billing"], "中文名"),
        ("@my-portal fix", ["portal"], "fix"),
        ("@My_Portal fix", ["portal"], "fix"),
        ("@portal-web fix", ["portal"], "fix"),
        ("@billing/ui fix", ["billing/ui"], "fix"),
        ("@billing/UI fix", ["billing/ui"], "fix"),
        ("@billing/ fix", ["billing"], "fix"),
        ("@billing @search upgrade", ["billing", "search"], "upgrade"),
        ("@billing, @search: upgrade", ["billing", "search"], "upgrade"),
        ("@billing @billing/ui @billing x", ["billing", "billing/ui"], "x"),
        ("upgrade everything @billing @search", ["billing", "search"], "upgrade everything"),
        ("ask @billing for the totals", ["billing"], "ask billing for the totals"),
        ("请@billing看一下", ["billing"], "请billing看一下"),
        ("(@billing) look", ["billing"], "(billing) look"),
        ("first line\n@billing second", ["billing"], "first line\nbilling second"),
        ("@billing", ["billing"], ""),
        (" @billing  ", ["billing"], ""),
        ("@billing.", ["billing"], ""),
    ],
)
def test_registered_names_are_targets(text: str, targets: list[str], rest: str) -> None:
    assert marks(text) == (targets, rest)


@pytest.mark.parametrize(
    "text",
    [
        "install @types/node",
        "mail bob@billing.com",
        "a@billing",
        "@billings are due",
        "@billing-old is gone",
        "@billing.com",
        "@billing's totals",
        "@billing@search",
        "@billing/src/main.py",
        "@billing/a.b",
        "@nobody hello",
        "@ billing",
        "@My Portal",
        "@",
        "x/@billing",
        "`@billing` in code",
        "```python\n@billing\ndef f(): ...\n```",
        "~~~\n@billing\n~~~",
        "user@ @",
        "@计费组 看一下",
    ],
)
def test_everything_else_is_text(text: str) -> None:
    assert marks(text) == ([], text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (r"\@billing is a name", "@billing is a name"),
        ("@@billing is a name", "@billing is a name"),
        (r"write \@billing/ui there", "write @billing/ui there"),
        (r"\@nobody stays", r"\@nobody stays"),
        ("@@nobody stays", "@@nobody stays"),
        (r"C:\@home", r"C:\@home"),
    ],
)
def test_an_escaped_name_is_literal_and_other_escapes_are_untouched(text: str, rest: str) -> None:
    assert marks(text) == ([], rest)


def test_an_escape_and_a_mark_in_one_text() -> None:
    assert marks(r"@search what does \@billing mean") == (["search"], "what does @billing mean")


def test_a_name_shared_by_two_projects_addresses_neither() -> None:
    twins = (project("a", "Web", "", "site"), project("b", "site"))
    found = ROUTER.addressed("@site fix", context(projects=twins))
    assert found == Addressed((), "@site fix")
    assert ROUTER.addressed("@web fix", context(projects=twins)).targets == (Target("a"),)


def test_an_unlisted_project_can_be_addressed_but_is_never_a_candidate() -> None:
    hidden = project("h", "hidden", listed=False)
    scene = context(projects=(BILLING, hidden))
    assert ROUTER.addressed("@hidden x", scene).targets == (Target("h"),)
    explicit = ROUTER.preview("@hidden x", scene)
    assert (explicit.target, explicit.automatic) == (Target("h"), True)
    for text in ("hidden: fix it", "fix the hidden thing"):
        found = ROUTER.preview(text, scene)
        assert found.target != Target("h")
        assert "h" not in [each.project for each in found.candidates]


def test_one_mark_decides_several_ask_for_one_message_each() -> None:
    one = ROUTER.preview("@billing/ui fix search", context(SEARCH))
    assert (one.stage, one.target, one.confidence, one.automatic) == (
        Stage.EXPLICIT,
        Target("p1", "ui"),
        1.0,
        True,
    )
    two = ROUTER.preview("@billing @search fix", context(PORTAL))
    assert (two.stage, two.target, two.automatic) == (Stage.EXPLICIT, None, False)
    assert [each.project for each in two.candidates] == ["p1", "p2"]


def test_an_address_reaches_a_protected_project_at_once() -> None:
    vault = project("v", "vault", protected=True)
    assert ROUTER.preview("@vault rotate", context(projects=(vault,))).automatic


@given(st.text())
def test_any_text_is_read_and_a_text_without_targets_or_escapes_is_unchanged(text: str) -> None:
    found = ROUTER.addressed(text, context())
    if not found.targets and "@@" not in text and "\\@" not in text:
        assert found.text == text


@given(
    st.lists(
        st.sampled_from(
            ["@billing", "@search", "\\@docs", "@x", "看", "word", " ", "\n", "`", ",", "@"]
        )
    )
)
def test_any_mixture_of_marks_is_read_twice_the_same(parts: list[str]) -> None:
    text = "".join(parts)
    found = ROUTER.addressed(text, context())
    assert found == ROUTER.addressed(text, context())
    assert len(set(found.targets)) == len(found.targets)


@pytest.mark.parametrize(
    "unit", ["@", "@billing ", "\\@billing ", "`x @billing\n", "@billing `x", "```\n@a", "@a/"]
)
def test_a_megabyte_of_marks_is_read_in_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.process_time()
        ROUTER.addressed(text, context())
        return time.process_time() - started

    small = min(seconds(100_000) for _ in range(2))
    assert seconds(1_000_000) < 40 * max(small, 0.005)
