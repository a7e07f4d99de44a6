"""The judges against a real server on loopback and real child processes: every way to fail."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psutil
import pytest

from isola_core.attribution.router import Router, RoutingContext
from isola_core.config import (
    CliJudgeConfig,
    LocalJudgeConfig,
    ManualJudgeConfig,
    OpenAICompatJudgeConfig,
)
from isola_core.errors import ConfigError, JudgeError
from isola_core.model import Candidate, Project, Target
from isola_core.ports import JudgeQuestion
from isola_harnesses.judges import CliJudge, ManualJudge, OpenAICompatJudge, create_judge
from tests.fake_model import Behaviour, FakeModel
from tests.fake_model.reading import objects
from tests.fake_model.script import Fail

KEY = "sk-fake-0123456789abcdef"
PROJECTS = (
    Project("billing", "Billing", "u.b", "Invoices and refunds", ("计费",)),
    Project("docs", "Handbook", "u.d", "The site"),
)
QUESTION = JudgeQuestion(
    "the totals are wrong", PROJECTS, (("docs", "fix the sidebar"),), current="docs"
)


def answer(project: str | None = "billing", confidence: float = 0.97, **more: object) -> str:
    return json.dumps({"project": project, "confidence": confidence, **more})


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(answer=lambda _: answer()) as running:
        yield running


def endpoint(model: FakeModel, timeout_s: float = 5.0, key: str = KEY) -> OpenAICompatJudge:
    return OpenAICompatJudge(
        f"{model.url}/v1/", "fake-model", api_key=key, api_key_env="JUDGE_KEY", timeout_s=timeout_s
    )


class TestEndpoint:
    async def test_it_asks_once_with_key_and_data_and_reads_the_answer(
        self, model: FakeModel
    ) -> None:
        judge = endpoint(model)
        found = await judge.judge(QUESTION)
        await judge.close()
        assert found.candidates == (Candidate("billing", 0.97, ""),)
        request = model.requests[0]
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body["model"] == "fake-model"
        system, user = objects(request.body["messages"])
        assert (system["role"], user["role"]) == ("system", "user")
        assert "the totals are wrong" in str(user["content"])
        assert "the totals are wrong" not in str(system["content"])

    async def test_several_questions_share_a_connection_and_closing_twice_is_fine(
        self, model: FakeModel
    ) -> None:
        judge = endpoint(model)
        await asyncio.gather(*(judge.judge(QUESTION) for _ in range(5)))
        await judge.close()
        await judge.close()
        assert len(model.requests) == 5

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (401, "check the key in JUDGE_KEY"),
            (403, "check the key in JUDGE_KEY"),
            (404, "check base_url and model"),
            (429, "no more requests"),
            (500, "answered 500"),
            (503, "answered 503"),
        ],
    )
    async def test_a_refusal_says_what_to_do_and_never_the_key(
        self, model: FakeModel, status: int, words: str
    ) -> None:
        model.next(Fail(status, f"bad key {KEY}"))
        judge = endpoint(model)
        with pytest.raises(JudgeError, match=re.escape(words)) as caught:
            await judge.judge(QUESTION)
        await judge.close()
        assert KEY not in f"{caught.value!r} {caught.value.details}"
        assert len(model.requests) == 1

    @pytest.mark.parametrize(
        ("behaviour", "words"),
        [
            (Behaviour.REFUSE, "cannot be reached"),
            (Behaviour.CUT, "cannot be reached"),
            (Behaviour.MALFORMED, "something else than a completion"),
            (Behaviour.HTML, "something else than a completion"),
            (Behaviour.EMPTY, "empty completion"),
            (Behaviour.REDIRECT, "redirects"),
        ],
    )
    async def test_a_broken_endpoint_is_an_error(
        self, model: FakeModel, behaviour: Behaviour, words: str
    ) -> None:
        model.next(behaviour)
        judge = endpoint(model)
        with pytest.raises(JudgeError, match=words):
            await judge.judge(QUESTION)
        await judge.close()

    @pytest.mark.parametrize("behaviour", [Behaviour.STALL, Behaviour.STALL_MIDWAY])
    async def test_a_stalling_endpoint_ends_at_the_deadline(
        self, model: FakeModel, behaviour: Behaviour
    ) -> None:
        model.next(behaviour)
        judge = endpoint(model, timeout_s=0.2)
        with pytest.raises(JudgeError, match=r"within 0\.2 s"):
            await judge.judge(QUESTION)
        await judge.close()
        model.wait_for_departures(1)

    @pytest.mark.parametrize("said", ["billing, I am sure", "", answer("nobody"), "x" * 600_000])
    async def test_an_answer_of_another_form_is_an_error(self, model: FakeModel, said: str) -> None:
        model.answer = lambda _: said
        judge = endpoint(model)
        with pytest.raises(JudgeError):
            await judge.judge(QUESTION)
        await judge.close()

    async def test_nobody_listening_is_an_error(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        judge = OpenAICompatJudge(f"http://127.0.0.1:{port}/v1", "m")
        with pytest.raises(JudgeError, match="cannot be reached"):
            await judge.judge(QUESTION)
        await judge.close()

    @pytest.mark.parametrize("key", ["", "sk-two\nlines", "sk-日本"])
    async def test_a_missing_or_impossible_key_asks_nobody(
        self, model: FakeModel, key: str
    ) -> None:
        judge = endpoint(model, key=key)
        with pytest.raises(JudgeError, match="JUDGE_KEY"):
            await judge.judge(QUESTION)
        assert not model.requests

    async def test_its_failure_is_a_card_and_its_answer_a_decision(self, model: FakeModel) -> None:
        judge = endpoint(model)
        router = Router(judge)
        scene = RoutingContext(PROJECTS, "docs")
        found = await router.decide("the totals are wrong", scene)
        assert (found.target, found.automatic) == (Target("billing"), True)
        model.next(Fail(500))
        card = await router.decide("the totals are wrong", scene)
        assert (card.target, card.automatic) == (None, False)
        assert "answered 500" in card.reason
        await judge.close()


def program(
    code: str,
    *,
    prompt: Literal["stdin", "argument"] = "stdin",
    timeout_s: float = 20.0,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> CliJudge:
    return CliJudge(
        [sys.executable, "-c", code],
        env=env if env is not None else dict(os.environ),
        timeout_s=timeout_s,
        prompt=prompt,
        cwd=cwd,
    )


def printing(text: str, then: str = "") -> str:
    return f"import sys; sys.stdin.read(); print({text!r}); {then}"


class TestProgram:
    @pytest.mark.parametrize("where", ["stdin", "argument"])
    async def test_it_gets_the_prompt_whole_and_closed(
        self, where: Literal["stdin", "argument"], tmp_path: Path
    ) -> None:
        got = tmp_path / "got"
        code = (
            "import json, pathlib, sys; given = [sys.stdin.read(), *sys.argv[1:]];"
            f"pathlib.Path({str(got)!r}).write_text(json.dumps(given));"
            f"print({answer()!r})"
        )
        nasty = "$(touch x) `y` ; rm -rf | 计费 ' \" \\ \n--flag"
        question = JudgeQuestion(nasty, PROJECTS)
        found = await program(code, prompt=where, cwd=tmp_path).judge(question)
        assert found.candidates[0].project == "billing"
        given, *arguments = json.loads(got.read_text())
        assert [given, *arguments].count("") == (where == "argument")
        text = given if where == "stdin" else arguments[0]
        assert json.dumps(nasty, ensure_ascii=False) in text
        assert not (tmp_path / "x").exists()

    async def test_a_command_line_is_split_and_never_run_by_a_shell(self, tmp_path: Path) -> None:
        script = tmp_path / "my judge.py"
        script.write_text(
            f"import sys; assert sys.argv[1:] == ['$HOME', '>x']; print({answer()!r})"
        )
        line = f"{sys.executable} '{script}' $HOME '>x'"
        judge = CliJudge(line, env=dict(os.environ), cwd=tmp_path)
        assert (await judge.judge(QUESTION)).candidates[0].project == "billing"
        assert not (tmp_path / "x").exists()

    @pytest.mark.parametrize("command", ["", "  ", [], [""], "unclosed 'quote", ["a\0b"]])
    def test_an_unusable_command_is_a_configuration_error(self, command: str | list[str]) -> None:
        with pytest.raises(ConfigError, match=r"judge\.command"):
            CliJudge(command, env={})

    @pytest.mark.parametrize(
        "output",
        [
            answer(),
            f"loading model…\n{answer()}\nbye",
            f'{{"level": "info"}}\n{answer("docs")}\n{answer()}',
            json.dumps({"type": "result", "is_error": False, "result": answer()}),
            json.dumps(
                {"type": "result", "is_error": False, "result": f"Sure:\n```json\n{answer()}\n```"}
            ),
            json.dumps([{"type": "system"}, {"type": "result", "result": answer()}]),
            '{"type": "system"}\n' + json.dumps({"type": "result", "result": answer()}),
        ],
    )
    async def test_its_answer_is_found_in_what_it_prints(self, output: str) -> None:
        found = await program(printing(output)).judge(QUESTION)
        assert found.candidates[0].project == "billing"

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (printing("no idea"), "no JSON object"),
            (printing(""), "empty"),
            (printing(answer("nobody")), "none of the projects"),
            (
                printing(json.dumps({"type": "result", "is_error": True, "result": answer()})),
                "error",
            ),
            (printing(json.dumps({"type": "result", "result": None})), "empty"),
            (printing(answer(), "sys.exit(3)"), "status 3"),
            (f"import sys; sys.exit('rate limited, key {KEY}')", "status 1: rate limited"),
            ("import os; os.kill(os.getpid(), 9)", "status -9"),
            ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe{' * 9000)", "no JSON object"),
        ],
    )
    async def test_anything_else_is_an_error_without_a_key(self, code: str, words: str) -> None:
        with pytest.raises(JudgeError, match=words) as caught:
            await program(code).judge(QUESTION)
        assert KEY not in caught.value.message

    async def test_a_program_that_is_not_there_or_cannot_run_is_an_error(
        self, tmp_path: Path
    ) -> None:
        with pytest.raises(JudgeError, match="not found"):
            await CliJudge("no-such-judge-anywhere", env=dict(os.environ)).judge(QUESTION)
        broken = tmp_path / "broken"
        broken.write_bytes(b"\x00\x01")
        broken.chmod(0o755)
        with pytest.raises(JudgeError, match="cannot run"):
            await CliJudge([str(broken)], env=dict(os.environ)).judge(QUESTION)

    async def test_a_flood_of_output_is_bounded_and_its_end_is_read(self) -> None:
        code = f"import sys\nfor _ in range(400): print('x' * 10_000)\nprint({answer()!r})"
        assert (await program(code).judge(QUESTION)).candidates[0].project == "billing"

    async def test_a_program_that_reads_nothing_can_still_answer(self) -> None:
        assert (await program(f"print({answer()!r})").judge(QUESTION)).decides

    async def test_the_environment_is_clean_of_other_agents(self, tmp_path: Path) -> None:
        dirty = {
            "PATH": os.environ["PATH"],
            "KEPT": "1",
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "TMUX": "/tmp/x,1,0",
            "TMUX_PANE": "%1",
            "ISOLA_HOME": "/x",
            "ISOLA_CONVERSATION": "c",
        }
        names = tmp_path / "names"
        code = (
            f"import os, pathlib; pathlib.Path({str(names)!r}).write_text(' '.join(os.environ));"
            f"print({answer()!r})"
        )
        await program(code, env=dirty).judge(QUESTION)
        seen = set(names.read_text().split()) - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
        assert seen == {"PATH", "KEPT", "CLAUDE_CODE_USE_BEDROCK"}

    @pytest.mark.parametrize("how", ["deadline", "cancel"])
    async def test_its_whole_family_is_gone_after(self, how: str, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        grandchild = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
        code = (
            "import os, pathlib, subprocess, sys, time, signal\n"
            "signal.signal(15, signal.SIG_IGN)\n"
            f"child = subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
            f"path = pathlib.Path({str(pids)!r})\n"
            "path.with_suffix('.new').write_text(f'{os.getpid()} {child.pid}')\n"
            "path.with_suffix('.new').rename(path)\n"
            "time.sleep(600)\n"
        )
        judge = program(code, timeout_s=1.5 if how == "deadline" else 60)
        asking = asyncio.create_task(judge.judge(QUESTION))
        async with asyncio.timeout(20):
            while not pids.exists() and not asking.done():  # noqa: ASYNC110 - a file is no event
                await asyncio.sleep(0.01)
        if how == "cancel":
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        else:
            with pytest.raises(JudgeError, match=r"within 1\.5 s"):
                await asking
        family = [int(pid) for pid in pids.read_text().split()]
        assert len(family) == 2
        for pid in family:
            assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


class TestCreation:
    async def test_manual_proposes_nothing_and_the_pipeline_makes_a_card_of_it(self) -> None:
        judge = create_judge(ManualJudgeConfig(), {})
        assert isinstance(judge, ManualJudge)
        card = await Router(judge, local=False).decide("totals", RoutingContext(PROJECTS, "docs"))
        assert (card.target, card.automatic) == (None, False)
        assert "manual" in card.reason
        await judge.close()

    def test_local_needs_none(self) -> None:
        assert create_judge(LocalJudgeConfig(), {}) is None

    async def test_an_endpoint_takes_its_key_from_the_named_variable(
        self, model: FakeModel
    ) -> None:
        config = OpenAICompatJudgeConfig(
            base_url=f"{model.url}/v1", model="fake-model", api_key_env="JUDGE_KEY"
        )
        judge = create_judge(config, {"JUDGE_KEY": KEY})
        assert judge is not None
        await judge.judge(QUESTION)
        await judge.close()
        assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"

    async def test_an_endpoint_without_a_key_sends_none(self, model: FakeModel) -> None:
        judge = create_judge(
            OpenAICompatJudgeConfig(base_url=f"{model.url}/v1", model="fake-model"), {}
        )
        assert judge is not None
        await judge.judge(QUESTION)
        await judge.close()
        assert "authorization" not in model.requests[0].headers

    async def test_a_program_is_taken_from_the_configuration(self) -> None:
        config = CliJudgeConfig(
            command=(sys.executable, "-c", f"print({answer()!r})"), prompt="argument"
        )
        judge = create_judge(config, dict(os.environ))
        assert judge is not None
        assert (await judge.judge(QUESTION)).candidates[0].project == "billing"
