"""The pipeline as a whole: when the external judge is asked, what it sees, and what may go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.attribution import router as router_module
from isola_core.attribution.router import Router
from isola_core.errors import JudgeError
from isola_core.model import Candidate, Project, Stage, Target
from isola_core.ports import Judgement, JudgeQuestion
from tests.core.attribution.scenes import ALL, BILLING, DOCS, SEARCH, context, project

UNSURE = "the totals are rounded wrongly"
ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


class ScriptedJudge:
    """Answers as told and remembers what it was asked."""

    name = "scripted"

    def __init__(self, answer: Judgement | Exception) -> None:
        self._answer = answer
        self.asked: list[JudgeQuestion] = []

    async def judge(self, question: JudgeQuestion) -> Judgement:
        self.asked.append(question)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        """Nothing to close."""


def saying(project_id: str, confidence: float, *, decides: bool = True) -> ScriptedJudge:
    candidate = Candidate(project_id, confidence, "it says so")
    return ScriptedJudge(Judgement((candidate,), decides=decides))


async def test_a_sure_judge_decides() -> None:
    found = await Router(saying("p3", 0.97)).decide(UNSURE, context(BILLING))
    assert (found.target, found.automatic, found.judge) == (Target("p3"), True, "scripted")
    assert (found.stage, found.confidence, found.reason) == (Stage.JUDGEMENT, 0.97, "it says so")
    assert found.candidates[0].project == "p3"
    assert found.runner_up is not None
    assert found.runner_up.project == "p1"


@pytest.mark.parametrize("confidence", [0.94, 0.72])
async def test_an_unsure_judge_only_proposes(confidence: float) -> None:
    found = await Router(saying("p3", confidence)).decide(UNSURE, context(BILLING))
    assert (found.target, found.automatic) == (Target("p3"), False)


async def test_a_judge_below_a_half_leaves_a_card() -> None:
    found = await Router(saying("p3", 0.4)).decide(UNSURE, context(BILLING))
    assert (found.target, found.automatic) == (None, False)
    assert found.candidates[0].project == "p3"


async def test_a_judge_that_only_proposes_never_decides() -> None:
    found = await Router(saying("p3", 1.0, decides=False)).decide(UNSURE, context(BILLING))
    assert (found.target, found.automatic) == (Target("p3"), False)


async def test_a_protected_project_is_only_proposed() -> None:
    vault = project("v", "treasury", protected=True)
    scene = context(BILLING, projects=(*ALL, vault))
    found = await Router(saying("v", 1.0)).decide(UNSURE, scene)
    assert (found.target, found.automatic) == (Target("v"), False)


async def test_a_new_project_is_an_answer_of_its_own() -> None:
    judge = ScriptedJudge(Judgement((), new_project=True))
    found = await Router(judge).decide(UNSURE, context(BILLING))
    assert (found.target, found.new_project, found.automatic) == (None, True, False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (JudgeError("the judge did not answer within 2 s"), "did not answer"),
        (RuntimeError("sk-secret in a traceback"), "the judge failed (RuntimeError)"),
        (Judgement((Candidate("nobody", 0.99, ""),)), "not registered"),
        (Judgement((Candidate("p1", float("nan"), ""),)), "no probability"),
        (Judgement((Candidate("p1", 7.0, ""),)), "no probability"),
        (Judgement(()), "unsure"),
    ],
)
async def test_a_failing_judge_gives_a_card_that_says_why(
    answer: Judgement | Exception, words: str
) -> None:
    found = await Router(ScriptedJudge(answer)).decide(UNSURE, context(BILLING))
    assert (found.target, found.automatic, found.judge) == (None, False, "scripted")
    assert words in found.reason
    assert "sk-secret" not in found.reason
    assert found.candidates[0].project == "p1"


async def test_cancelling_goes_through_to_the_caller() -> None:
    class Slow(ScriptedJudge):
        async def judge(self, question: JudgeQuestion) -> Judgement:
            self.asked.append(question)
            await asyncio.Event().wait()
            raise AssertionError

    judge = Slow(Judgement(()))
    task = asyncio.create_task(Router(judge).decide(UNSURE, context(BILLING)))
    while not judge.asked:  # noqa: ASYNC110 - until it waits
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "text",
    ["@billing fix", "billing is broken", "same layout as billing", "ok", "new project: quill"],
)
async def test_a_judge_is_not_asked_where_the_words_settle_it(text: str) -> None:
    judge = saying("p3", 1.0)
    router = Router(judge)
    found = await router.decide(text, context(SEARCH))
    assert not judge.asked
    assert not router.needs_judge(found)


async def test_a_judge_cannot_settle_who_an_ok_is_for() -> None:
    judge = saying("p3", 1.0)
    found = await Router(judge).decide("ok", context(BILLING, asking=(DOCS,)))
    assert (found.target, judge.asked) == (None, [])


@pytest.mark.parametrize(
    "text", [UNSURE, "improve search", "billing and trader disagree", "same layout as billing"]
)
async def test_a_judge_is_asked_where_they_do_not(text: str) -> None:
    judge = saying("p3", 1.0)
    router = Router(judge)
    scene = context(None)
    assert router.needs_judge(router.preview(text, scene))
    assert (await router.decide(text, scene)).target == Target("p3")
    assert len(judge.asked) == 1


async def test_a_judge_sees_projects_and_six_masked_messages_and_nothing_else() -> None:
    key = "sk-ant-api03-" + "x1Y2z3" * 16
    hidden = project("h", "hidden", listed=False)
    recent = (("gone", "of a removed project"), *(("p1", f"message {n} {key}") for n in range(9)))
    judge = saying("p1", 1.0)
    scene = context(BILLING, projects=(*ALL, hidden), recent=recent)
    await Router(judge).decide(f"why is {key} wrong" + " x" * 10_000, scene)
    question = judge.asked[0]
    assert [each.id for each in question.projects] == [each.id for each in ALL]
    assert [each for each, _ in question.recent] == ["p1"] * 6
    assert [said[:9] for _, said in question.recent] == [f"message {n}" for n in range(3, 9)]
    assert key not in question.text + "".join(said for _, said in question.recent)
    assert len(question.text) < 5_000
    assert question.current == "p1"


async def test_without_projects_nobody_is_asked_and_the_reason_says_so() -> None:
    judge = saying("p1", 1.0)
    found = await Router(judge).decide(UNSURE, context(projects=()))
    assert (found.target, found.automatic, judge.asked) == (None, False, [])
    assert "no project" in found.reason


def test_without_any_judge_the_rules_still_decide_and_the_rest_is_a_card() -> None:
    router = Router(local=False)
    assert router.preview("billing is broken", context()).automatic
    assert router.preview("ok", context(BILLING)).automatic
    found = router.preview(UNSURE, context(BILLING))
    assert (found.target, found.candidates) == (None, ())
    assert not router.needs_judge(found)


@pytest.mark.parametrize("stage", ["read", "decide_by_rules", "judge_locally", "addressed"])
async def test_a_stage_that_breaks_gives_a_card_that_says_so(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("private words")

    monkeypatch.setattr(router_module, stage, broken)
    text = "@billing what" if stage == "addressed" else UNSURE
    found = await Router().decide(text, context(BILLING))
    assert (found.target, found.automatic) == (None, False)
    assert "ZeroDivisionError" in found.reason
    assert "private words" not in found.reason


@given(ANY, st.sampled_from([None, *ALL]))
def test_any_text_gets_an_attribution_that_did_not_fail(text: str, current: Project | None) -> None:
    found = Router().preview(text, context(current))
    assert "failed" not in found.reason
    assert not found.automatic or found.target is not None
    assert found.latency_ms >= 0.0


@given(ANY, ANY, ANY)
def test_any_names_and_descriptions_can_be_registered(name: str, alias: str, words: str) -> None:
    scene = context(projects=(BILLING, project("x", name, words, alias, "")))
    for text in (name, f"@{name} hi", f"{alias}: {words}", words):
        assert "failed" not in Router().preview(text, scene).reason
        Router().addressed(text, scene)


PIECES: tuple[Callable[[int], str], ...] = (
    lambda size: "billing " * size,
    lambda size: "same as " * size,
    lambda size: "same layout " * size + "billing",
    lambda size: "好" * size,
    lambda size: "参考" * size + "billing",
    lambda size: "\x01" * size,
    lambda size: "a-" * size,
    lambda size: "in the " * size + "search",
    lambda size: "\n" * size,
    lambda size: "{" * size,
    lambda size: "please let's " * size,
)


@pytest.mark.parametrize("make", PIECES)
def test_a_huge_hostile_text_is_bounded(make: Callable[[int], str]) -> None:
    router = Router()
    router.preview("warm up billing", context(BILLING))
    found = min(
        (router.preview(make(200_000), context(BILLING)) for _ in range(3)),
        key=lambda each: each.latency_ms,
    )
    assert "failed" not in found.reason
    assert found.latency_ms < 250
