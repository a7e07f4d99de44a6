"""The child: how it is started, kept, ended; what becomes of its odd behaviour."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from isola_core.errors import Conflict, HarnessError
from isola_core.ports import FailureKind, SessionState, TurnEventKind
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.claude.process import Child
from isola_harnesses.claude.session import Limits
from tests.harnesses.claude.conftest import Desk, HeldClock, MakeDesk, until


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_the_first_start_sets_the_id_and_later_ones_resume_it(desk: Desk) -> None:
    first = await desk.send("one")
    second = await desk.send("two")
    assert len(desk.starts) == 1
    await desk.harness.close()
    (start,) = desk.starts
    assert start["cwd"] == str(desk.cwd)
    assert start["group"] == start["pid"]
    assert start["arguments"][-2:] == ["--session-id", first.backend_id]
    assert second.backend_id == first.backend_id


async def test_a_restart_resumes_the_same_session(make_desk: MakeDesk) -> None:
    desk = make_desk()
    first = await desk.send("one")
    await desk.harness.close()
    again = make_desk()
    result = await again.send(again.message("one") and "two")
    assert result.ok
    assert again.starts[-1]["arguments"][-2:] == ["--resume", first.backend_id]


async def test_a_session_is_held_while_its_child_lives(desk: Desk) -> None:
    assert not desk.harness.holds(desk.session)
    await desk.send("one")
    assert desk.harness.holds(desk.session)
    await desk.harness.close()
    assert not desk.harness.holds(desk.session)


async def test_settings_become_arguments(make_desk: MakeDesk) -> None:
    settings = ClaudeSettings(
        model="opus",
        permission_mode="plan",
        allowed_tools=("Read", "Bash(git log *)"),
        disallowed_tools=(),
        append_system_prompt="Be brief.",
        background_tasks=True,
    )
    desk = make_desk(settings)
    await desk.send("one")
    arguments = desk.starts[0]["arguments"]
    for pair in (
        ["--model", "opus"],
        ["--permission-mode", "plan"],
        ["--append-system-prompt", "Be brief."],
        ["--permission-prompt-tool", "stdio"],
    ):
        at = arguments.index(pair[0])
        assert arguments[at : at + 2] == pair
    at = arguments.index("--allowedTools")
    assert arguments[at + 1 : at + 3] == ["Read", "Bash(git log *)"]
    assert "--disallowedTools" not in arguments


async def test_the_environment_says_nothing_of_other_agents(make_desk: MakeDesk) -> None:
    others = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "TMUX", "TMUX_PANE")
    desk = make_desk(
        ClaudeSettings(env_from={"ANTHROPIC_API_KEY": "BILLING_KEY"}),
        **dict.fromkeys(others, "1"),
        ISOLA_CONVERSATION="c-1",
        BILLING_KEY="k-1",
        CLAUDE_CODE_MAX_RETRIES="0",
    )
    await desk.send("one")
    env = desk.starts[0]["env"]
    assert not set(others) & set(env)
    assert not [name for name in env if name.startswith("ISOLA")]
    assert env["ANTHROPIC_API_KEY"] == "k-1"
    assert env["CLAUDE_CODE_MAX_RETRIES"] == "0"


async def test_a_missing_variable_is_named(make_desk: MakeDesk) -> None:
    desk = make_desk(ClaudeSettings(env_from={"ANTHROPIC_API_KEY": "NOT_THERE"}))
    with pytest.raises(HarnessError, match="NOT_THERE"):
        await desk.harness.ensure_session(desk.session)


async def test_ensuring_a_session_sends_and_starts_nothing(desk: Desk) -> None:
    status = await desk.harness.ensure_session(desk.session)
    assert status.state is SessionState.ASLEEP
    assert status.detail == "9.9.9 (Fake Code)"
    assert status.session.backend_id
    assert not desk.starts


async def test_what_is_missing_is_said_with_its_remedy(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(ClaudeSettings(binary="no-such-claude"))
    with pytest.raises(HarnessError, match=r"no-such-claude.*npm install"):
        await desk.harness.ensure_session(desk.session)
    gone = replace(desk.session, cwd=tmp_path / "gone")
    with pytest.raises(HarnessError, match="does not exist"):
        await desk.harness.ensure_session(gone)
    nowhere = replace(desk.session, cwd=None)
    with pytest.raises(HarnessError, match="has none"):
        await desk.harness.ensure_session(nowhere)


async def test_a_history_of_another_folder_is_not_started_anew(desk: Desk, tmp_path: Path) -> None:
    await desk.send("one")
    moved = tmp_path / "moved"
    moved.mkdir()
    session = replace(desk.session, cwd=moved)
    with pytest.raises(HarnessError, match="another folder"):
        await desk.harness.dispatch(session, desk.message("two"))
    assert len(desk.starts) == 1


async def test_one_message_is_in_flight(desk: Desk) -> None:
    sending = desk.sending("[[silence]]")
    await until(lambda: desk.events)
    with pytest.raises(Conflict):
        await desk.harness.dispatch(desk.session, desk.message("two"))
    await desk.harness.interrupt(desk.session)
    assert (await sending).failure is FailureKind.CANCELLED


async def test_noise_goes_to_the_diagnostics(desk: Desk) -> None:
    result = await desk.send("[[noise]]")
    assert result.reply == "REPLY: [[noise]]"
    assert result.meta["noise"] == ["Warning: {not json", "[1, 2]", '"text"']


async def test_large_answers_arrive_and_an_endless_line_is_dropped(desk: Desk) -> None:
    assert len((await desk.send("[[big]]")).reply) == 8 * 1024 * 1024
    result = await desk.send("[[giant]]")
    assert result.ok
    assert result.meta["dropped_lines"] == 1


async def test_a_flood_on_stderr_blocks_nothing_and_is_bounded(desk: Desk) -> None:
    assert (await desk.send("[[flood]]")).ok
    result = await desk.send("[[limit]]")
    assert len(str(result.meta["stderr"])) <= 16 * 1024


async def test_an_exit_in_the_middle_is_a_failure_with_its_words(desk: Desk) -> None:
    result = await desk.send("[[exit]]")
    assert not result.ok
    assert result.reply == ""
    assert "exit status 3" in result.error
    assert "it cannot go on" in result.error
    assert (result.written, result.received) == (True, True)
    assert (await desk.send("next")).ok


async def test_an_exit_before_the_message_was_kept_leaves_nothing_written(desk: Desk) -> None:
    await desk.send("one")
    desk.transcript.unlink()
    os.kill(desk.starts[0]["pid"], signal.SIGKILL)
    await until(lambda: not alive(desk.starts[0]["pid"]))
    result = await desk.send("two")
    assert result.ok
    assert desk.transcript.read_text().count('"two"') == 1


async def test_a_program_that_only_closes_its_output_is_ended(desk: Desk) -> None:
    result = await desk.send("[[shut]]")
    assert not result.ok
    assert not alive(desk.starts[0]["pid"])


async def test_a_program_that_never_exits_is_killed(desk: Desk) -> None:
    assert (await desk.send("[[stubborn]]")).ok
    pid = desk.starts[0]["pid"]
    await desk.harness.close()
    assert not alive(pid)


@pytest.mark.parametrize("kind", ["grandchild", "escaped"])
async def test_its_own_children_end_with_it(desk: Desk, kind: str) -> None:
    pid = int((await desk.send(f"[[{kind}]]")).reply)
    assert alive(pid)
    await desk.harness.close()
    assert not alive(pid)


async def test_children_of_a_killed_one_end_too(desk: Desk) -> None:
    pid = int((await desk.send("[[grandchild]]")).reply)
    os.kill(desk.starts[0]["pid"], signal.SIGKILL)
    await until(lambda: not alive(pid))


async def test_a_command_that_left_the_group_ends_with_a_killed_agent(desk: Desk) -> None:
    sending = desk.sending("[[command]]")
    note = desk.home / "command.pid"
    await until(lambda: note.exists() and note.read_text())
    pid = int(note.read_text())
    # Its descendants are looked at every so often while a turn runs.
    await until(lambda: TurnEventKind.STATUS in [each.kind for each in desk.events])
    os.kill(desk.starts[0]["pid"], signal.SIGKILL)
    assert not (await sending).ok
    assert not alive(pid)


async def test_a_strangers_process_is_never_ended(desk: Desk) -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
    try:
        await desk.send("[[stubborn]]")
        await desk.harness.close()
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_ending_twice_and_after_the_end_is_harmless(tmp_path: Path) -> None:
    child = await Child.start(["sleep", "1000"], tmp_path, dict(os.environ))
    await asyncio.gather(child.end(0.1), child.end(0.1))
    await child.end(0.1)
    assert child.returncode is not None


async def test_an_interrupt_that_is_ignored_ends_the_child(desk: Desk) -> None:
    sending = desk.sending("[[deaf]]")
    await until(lambda: desk.events)
    await desk.harness.interrupt(desk.session)
    result = await sending
    assert result.failure is FailureKind.CANCELLED
    assert not alive(desk.starts[0]["pid"])
    assert (await desk.send("next")).ok


async def test_an_interrupt_without_a_turn_has_no_effect(desk: Desk) -> None:
    await desk.harness.interrupt(desk.session)
    await desk.send("one")
    await desk.harness.interrupt(desk.session)
    assert (await desk.send("two")).ok


async def test_a_turn_that_takes_too_long_is_interrupted(make_desk: MakeDesk) -> None:
    desk = make_desk(ClaudeSettings(timeout_s=0.5))
    result = await desk.send("[[silence]]")
    assert result.failure is FailureKind.TIMED_OUT
    assert "timeout_s" in result.error


async def test_silence_is_told_while_it_lasts(desk: Desk) -> None:
    sending = desk.sending("[[silence]]")
    await until(lambda: [each for each in desk.events if "no sign of life" in each.text])
    await desk.harness.interrupt(desk.session)
    await sending


async def test_an_idle_child_sleeps_and_is_woken_by_the_next_message(make_desk: MakeDesk) -> None:
    clock = HeldClock()
    desk = make_desk(clock=clock)
    await desk.send("one")
    await until(lambda: clock.asleep)
    clock.pass_time()
    await until(lambda: not alive(desk.starts[0]["pid"]))
    status = await desk.harness.ensure_session(desk.session)
    assert status.state is SessionState.ASLEEP
    assert (await desk.send("two")).ok
    assert "--resume" in desk.starts[1]["arguments"]


async def test_a_child_with_work_in_the_background_stays_awake(make_desk: MakeDesk) -> None:
    clock = HeldClock()
    desk = make_desk(clock=clock)
    await desk.send("[[background]]")
    await until(lambda: clock.asleep == 1)
    clock.pass_time()
    await until(lambda: clock.asleep == 2)
    assert alive(desk.starts[0]["pid"])


async def test_a_session_open_elsewhere_is_waited_for(make_desk: MakeDesk) -> None:
    desk = make_desk(limits=Limits(holder=0.3))
    status = await desk.harness.ensure_session(desk.session)
    sessions = desk.home / ".claude" / "sessions"
    sessions.mkdir(parents=True)
    entry = {"pid": os.getpid(), "sessionId": status.session.backend_id, "cwd": str(desk.cwd)}
    (sessions / f"{os.getpid()}.json").write_text(json.dumps(entry))
    with pytest.raises(HarnessError, match=f"process {os.getpid()}"):
        await desk.send("one")
    (sessions / f"{os.getpid()}.json").write_text(json.dumps(entry | {"procStart": "1"}))
    assert (await desk.send("one")).ok


async def test_text_arrives_in_pieces_with_blocks_set_apart(desk: Desk) -> None:
    await desk.send("[[pieces]]")
    texts = [each.text for each in desk.events if each.kind is TurnEventKind.TEXT]
    assert texts == ["first ", "half", "\n\n", "second"]


async def test_a_turn_that_the_agent_began_by_itself_is_not_our_answer(desk: Desk) -> None:
    result = await desk.send("[[own-turn]]")
    assert result.reply == "REPLY: [[own-turn]]"
    assert result.meta["other_results"] == 1


async def test_closing_fails_a_running_turn_and_refuses_new_ones(desk: Desk) -> None:
    sending = desk.sending("[[silence]]")
    await until(lambda: desk.events)
    await desk.harness.close()
    assert not (await sending).ok
    with pytest.raises(HarnessError):
        await desk.send("more")
