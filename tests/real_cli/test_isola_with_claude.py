"""The whole program over the real Claude Code: three projects, twenty messages, one corrected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isola_core.model import DecisionState, DecisionView, DeliveryState, RewindState, Target
from isola_core.ports import Question
from isola_core.projects import NewProject
from isola_core.service.delegated import Incoming
from isola_tui.runtime import Runtime, open_runtime
from tests.fake_model import FakeModel
from tests.real_cli.claude_world import until

PROJECTS = ("billing", "search", "infra")

CONFIG = """
harness:
  type: claude
isolation_s: 0
"""


@asynccontextmanager
async def _isola(home: Path, env: dict[str, str]) -> AsyncIterator[Runtime]:
    """The program's parts in this process, with projects in folders of their own."""
    home.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240 - a test's own folder
    config = home / "config.yaml"
    config.write_text(CONFIG)
    config.chmod(0o600)
    async with open_runtime(config, environ={**env, "ISOLA_HOME": str(home)}) as runtime:
        known = {project.id for project in await runtime.projects.all()}
        for name in PROJECTS:
            folder = home.parent / "repos" / name
            folder.mkdir(parents=True, exist_ok=True)
            if name not in known:
                await runtime.projects.add(NewProject(name.capitalize(), path=folder, id=name))
        yield runtime


async def _say(runtime: Runtime, text: str) -> DecisionView:
    accepted = await runtime.service.accept(Incoming("terminal", text))
    (decision,) = accepted.decisions
    return decision


def _requests_with(model: FakeModel, text: str) -> list[str]:
    """The folders of the model's requests that hold a text, as Claude Code tells them."""
    found = []
    for request in model.requests:
        raw = request.raw.decode()
        if text in raw:
            found += [name for name in PROJECTS if f"/repos/{name}" in raw]
    return found


async def test_twenty_messages_over_three_projects_stay_apart(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        sent: list[tuple[str, str, DecisionView]] = []
        for number in range(20):
            project = PROJECTS[number * 7 % 3]
            text = f"MARK-{number:02d} " + (
                "查看发票 \U0001f9fe\ttab" if number % 2 else "!ls /compact"
            )
            sent.append((project, text, await _say(runtime, f"@{project} {text}")))
        await runtime.dispatcher.settle()
        for project, text, decision in sent:
            view = await runtime.service.decision(decision.id)
            assert view.delivery is DeliveryState.ANSWERED, view.delivery_error
            assert text in view.reply
            assert set(_requests_with(model, text.split()[0])) == {project}
        await runtime.recovery.tick()
        memories = {
            name: await runtime.recall(await runtime.projects.find(name), "MARK", 50)
            for name in PROJECTS
        }
        for name, found in memories.items():
            mine = {text for project, text, _ in sent if project == name}
            assert {memory.content for memory in found} == mine


async def test_a_correction_leaves_no_byte_behind_and_keeps_later_turns(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        await _say(runtime, "@billing FIRST things")
        wrong = await _say(runtime, "@billing FOREIGN-7F3A goes elsewhere")
        await _say(runtime, "@billing LATER things")
        await runtime.dispatcher.settle()
        await runtime.recovery.tick()
        corrected = await runtime.service.correct(wrong.id, Target("search"))
        assert corrected.undone.rewinding
        after = await _say(runtime, "@billing AFTERWARDS things")
        await runtime.dispatcher.settle()
        assert (await runtime.service.decision(wrong.id)).rewind is RewindState.DONE
        billing = [
            request.raw.decode()
            for request in model.requests
            if "AFTERWARDS" in request.raw.decode()
        ]
        assert billing
        for raw in billing:
            assert "FOREIGN-7F3A" not in raw
            assert "FIRST" in raw
            assert "LATER" in raw
        new = await runtime.service.decision(corrected.new.id)
        assert new.delivery is DeliveryState.ANSWERED
        assert "FOREIGN-7F3A" in new.reply
        assert (await runtime.service.decision(after.id)).delivery is DeliveryState.ANSWERED
        await runtime.recovery.tick()
        billing_project = await runtime.projects.find("billing")
        assert await runtime.recall(billing_project, "FOREIGN-7F3A elsewhere", 9) == []


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_permission_is_answered_while_the_turn_waits(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path, allowed: bool
) -> None:
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        made = tmp_path / "repos" / "infra" / "made.txt"
        ask = '[[tool:Write {"file_path": "' + str(made) + '", "content": "hello"}]]'
        decision = await _say(runtime, f"@infra {ask}")
        working = asyncio.create_task(runtime.dispatcher.settle())
        questions = runtime.dispatcher.live.questions
        await until(lambda: bool(questions))
        ((session, (question, *_)),) = questions.items()
        assert isinstance(question, Question)
        assert question.tool == "Write"
        assert "made.txt" in question.detail
        choice = next(
            key for key, _ in question.choices if key.startswith("allow" if allowed else "deny")
        )
        await runtime.dispatcher.answer(session, question.id, choice)
        await working
        view = await runtime.service.decision(decision.id)
        assert view.delivery is DeliveryState.ANSWERED, view.delivery_error
        assert made.exists() is allowed
        assert runtime.dispatcher.live.questions == {}


async def test_a_running_turn_is_interrupted_corrected_and_forgotten(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        await _say(runtime, "@billing before")
        await runtime.dispatcher.settle()
        wrong = await _say(runtime, "@billing FOREIGN-11 [[sleep:30]]")
        working = asyncio.create_task(runtime.dispatcher.settle())
        await until(lambda: any("FOREIGN-11" in each.raw.decode() for each in model.requests))
        await runtime.service.correct(wrong.id, Target("search"))
        search_done = asyncio.create_task(_stop_in(runtime, "search"))
        await working
        await search_done
        old = await runtime.service.decision(wrong.id)
        assert old.state is DecisionState.CORRECTED
        assert old.delivery is DeliveryState.CANCELLED
        assert old.rewind in (RewindState.DONE, RewindState.REPLACED)
        await _say(runtime, "@billing after")
        await runtime.dispatcher.settle()
        last = [
            each.raw.decode() for each in model.requests if "/repos/billing" in each.raw.decode()
        ]
        assert "FOREIGN-11" not in last[-1]
        assert "before" in last[-1]


async def _stop_in(runtime: Runtime, project: str) -> None:
    """Stop the long turn of the right project as well, so that the test ends."""
    async with asyncio.timeout(30):
        while True:
            for view in await runtime.service.latest(project=project):
                if view.delivery in (DeliveryState.WRITTEN, DeliveryState.RECEIVED):
                    await runtime.service.interrupt(view.id)
                    return
            await asyncio.sleep(0.05)


async def test_a_session_goes_on_after_a_restart(
    claude_env: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        await _say(runtime, "@billing REMEMBER-THIS")
        await runtime.dispatcher.settle()
    async with _isola(tmp_path / "isola", claude_env) as runtime:
        await _say(runtime, "@billing and now")
        await runtime.dispatcher.settle()
        last = model.requests[-1].raw.decode()
        assert "REMEMBER-THIS" in last
