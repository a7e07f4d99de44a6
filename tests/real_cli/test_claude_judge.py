"""The command-line judge with the real `claude -p` as its program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isola_core.errors import JudgeError
from isola_core.model import Project
from isola_core.ports import JudgeQuestion
from isola_harnesses.judges import CliJudge
from tests.fake_model import FakeModel

QUESTION = JudgeQuestion(
    "why is the invoice total wrong?",
    (
        Project("billing", "billing", "proj:billing", "invoices and payments"),
        Project("search", "search", "proj:search", "the index"),
    ),
)
ANSWER = {"project": "billing", "confidence": 0.97, "reason": "it is about invoices"}


@pytest.mark.parametrize("form", [[], ["--output-format", "json"]])
@pytest.mark.parametrize("prompt", ["stdin", "argument"])
async def test_claude_print_mode_answers_as_a_judge(
    model: FakeModel, claude_env: dict[str, str], tmp_path: Path, form: list[str], prompt: str
) -> None:
    model.answer = lambda request: json.dumps(ANSWER)
    judge = CliJudge(
        ["claude", "-p", *form],
        env=claude_env,
        prompt="stdin" if prompt == "stdin" else "argument",
        cwd=tmp_path,
    )
    judgement = await judge.judge(QUESTION)
    assert judgement.candidates[0].project == "billing"
    assert judgement.candidates[0].confidence == pytest.approx(0.97)
    assert "why is the invoice total wrong?" in model.requests[-1].raw.decode()


async def test_an_error_of_the_agent_is_no_judgement(
    model: FakeModel, claude_env: dict[str, str], tmp_path: Path
) -> None:
    model.answer = lambda request: "[[no answer]]"
    judge = CliJudge(["claude", "-p"], env=claude_env, cwd=tmp_path)
    with pytest.raises(JudgeError):
        await judge.judge(QUESTION)
    failing = claude_env | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    with pytest.raises(JudgeError):
        await CliJudge(["claude", "-p"], env=failing, cwd=tmp_path).judge(QUESTION)
