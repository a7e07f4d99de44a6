"""The command harness: what goes in, which session, which settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isola_core.errors import ConfigError
from isola_core.ports import SessionState
from isola_harnesses import command, conformance
from isola_harnesses.conformance import Host, Subject
from isola_harnesses.registry import HarnessServices
from tests.harnesses.command_bench import ENV, Bench, python

AGENT = Path(__file__).with_name("scripted_agent.py")


@pytest.mark.parametrize("way", ["stdin", "argument"])
async def test_the_command_harness_keeps_the_contract(tmp_path: Path, way: str) -> None:
    base = python(str(AGENT), "--state", str(tmp_path))
    prompt = ["--by-argument={prompt}"] if way == "argument" else []
    settings = {
        "argv": [*base, "--new", *prompt],
        "resume": [*base, "--resume", "{session}", *prompt],
        "reply": "last-json-line",
        "reply_path": "result",
        "session_path": "session_id",
    }
    log = tmp_path / "seen.jsonl"

    def seen() -> list[str]:
        lines = log.read_text().split("\n") if log.exists() else []
        return [json.loads(line) for line in lines[:-1]]

    subject = Subject(
        create=lambda services: command.create(settings, services),
        seen=seen,
        failing="fail",
        slow="slow",
        env=ENV,
    )
    results = await conformance.check(subject)
    conformance.require(results)
    assert {each.name for each in results if each.skipped} == {
        "fragments_add_up_to_the_reply",
        "a_rewound_turn_is_forgotten",
        "a_receipt_is_never_invented",
        "an_unknown_question_is_refused",
    }


async def test_stdin_is_closed_also_for_a_program_that_takes_an_argument(tmp_path: Path) -> None:
    body = "print('got', repr(sys.argv[1]), repr(text))"
    one = Bench(tmp_path / "b", body, argv=["{prompt}"])
    assert (await one.say("-x $HOME {session}")).reply == "got '-x $HOME {session}' ''"


async def test_arguments_are_filled_once_and_the_folder_is_the_projects(tmp_path: Path) -> None:
    body = "print(json.dumps([sys.argv[1:], os.getcwd(), os.environ['PWD'], text]))"
    argv = ["--cwd={cwd}", "{unknown}", "{{cwd}}"]
    one = Bench(tmp_path / "with space ü", body, argv=argv)
    cwd = str(one.session.cwd)
    said = json.loads((await one.say("{cwd} it")).reply)
    assert said == [[f"--cwd={cwd}", "{unknown}", f"{{{cwd}}}"], cwd, cwd, "{cwd} it"]


async def test_a_project_without_a_folder_gets_an_empty_one(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "print(os.getcwd(), os.listdir())")
    one.session = replace(one.session, cwd=None)
    reply = (await one.say()).reply
    assert reply.startswith(str(tmp_path / "b" / "run" / "state"))
    assert reply.endswith(" []")


async def test_the_environment_is_clean(tmp_path: Path) -> None:
    env = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "TMUX": "x",
        "TMUX_PANE": "%1",
        "ISOLA_HOME": "/x",
        "MY_KEY": "fake-key",
    }
    body = "print(json.dumps(dict(os.environ)))"
    one = Bench(tmp_path / "b", body, env, env_from={"AGENT_KEY": "MY_KEY"})
    seen = json.loads((await one.say()).reply)
    assert {name for name in env if name in seen} == {"CLAUDE_CODE_USE_BEDROCK", "MY_KEY"}
    assert seen["AGENT_KEY"] == "fake-key"


@pytest.mark.parametrize("size", [1, 300_000])
@pytest.mark.parametrize("body", ["", "sys.stdin.read(0); os.close(0)", "os.read(0, 100_000)"])
async def test_a_message_that_was_not_read_whole_did_not_arrive(
    tmp_path: Path, body: str, size: int
) -> None:
    one = Bench(tmp_path / "b", "")
    (tmp_path / "b" / "program.py").write_text(f"import os, sys\n{body}\nprint('fine')")
    result = await one.say("x" * size)
    if "os.read" in body and size == 1:
        assert result.reply == "fine"
        return
    assert not result.ok
    assert "without reading the whole message" in result.error


async def test_a_text_too_long_for_an_argument_is_said(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "print(len(sys.argv[1]))", argv=["{prompt}"])
    assert (await one.say("x" * 100_000)).reply == "100000"
    result = await one.say("x" * 200_000)
    assert (result.ok, result.written) == (False, False)
    assert "prompt: stdin" in result.error


async def test_the_next_turn_resumes_the_session_that_the_first_answer_named(
    tmp_path: Path,
) -> None:
    body = "print('log {'); print(json.dumps({'id': 'T-1', 'out': [{'text': sys.argv[1]}]}))"
    one = Bench(
        tmp_path / "b",
        body,
        argv=["new"],
        resume=["resume {session}"],
        reply="json",
        reply_path="out[0].text",
        session_path="id",
    )
    first = await one.say()
    assert (first.reply, first.backend_id) == ("new", "T-1")
    second = await one.say()
    assert (second.reply, second.backend_id) == ("resume T-1", None)
    fresh = await one.harness.reset_session(one.session)
    assert (fresh.generation, fresh.backend_id) == (1, None)


async def test_an_own_session_id_is_kept_and_differs_between_projects(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "print(sys.argv[1])", argv=["{session}"])
    first = await one.say()
    assert first.reply == first.backend_id == one.session.backend_id
    assert (await one.say()).reply == first.reply
    _, other = await one.host.send(one.host.session("search"), "hello")
    assert other.reply != first.reply


@pytest.mark.parametrize("bad", ["--option", "", "a\nb", 7])
async def test_a_session_id_that_could_be_an_option_is_not_taken(
    tmp_path: Path, bad: object
) -> None:
    body = f"print(json.dumps({{'out': 'fine', 'id': {bad!r}}}))"
    one = Bench(
        tmp_path / "b",
        body,
        reply="json",
        reply_path="out",
        session_path="id",
        resume=["{session}"],
    )
    result = await one.say()
    assert (result.ok, result.backend_id) == (True, None)


async def test_a_missing_program_or_folder_is_said_before_anything_starts(tmp_path: Path) -> None:
    one = Bench(tmp_path / "b", "print('fine')")
    missing = replace(one.session, cwd=tmp_path / "nowhere")
    status = await one.harness.ensure_session(missing)
    assert status.state is SessionState.FAILED
    assert "nowhere does not exist" in status.detail
    harness = command.create(
        {"argv": ["no-such-agent-anywhere"]},
        HarnessServices(one.host.history, one.host._clock, ENV, tmp_path / "state"),
    )
    status = await harness.ensure_session(one.session)
    assert (status.state, "is not found" in status.detail) == (SessionState.FAILED, True)
    result = await harness.dispatch(one.session, one.host.message("hello"))
    assert (result.ok, result.written) == (False, False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "argv: it is needed"),
        ({"argv": []}, "argv: "),
        ({"argv": "agent -p"}, "argv: Expected `array`"),
        ({"argv": ["./agent"]}, "a name on PATH or a whole path"),
        ({"argv": ["{prompt}"]}, "its first word is the program"),
        ({"argv": ["a"], "prompt": "argument"}, "argv: it needs {prompt}"),
        ({"argv": ["a", "{prompt}"], "prompt": "stdin"}, "has {prompt}"),
        ({"argv": ["a"], "resume": ["a", "{session}"]}, "set session_path"),
        ({"argv": ["a", "{session}"], "resume": ["a", "--last"]}, "it needs {session}"),
        ({"argv": ["a"], "reply": "json"}, "reply_path: it is needed"),
        ({"argv": ["a"], "reply": "json", "reply_path": "a..b"}, "is not a path"),
        ({"argv": ["a"], "reply_path": "a"}, "set reply to json"),
        ({"argv": ["a"], "reply": "yaml"}, "reply: "),
        ({"argv": ["a"], "timeout_s": 0}, "timeout_s: "),
        ({"argv": ["a"], "env_from": {"A B": "C"}}, "env_from: "),
    ],
)
def test_settings_that_cannot_work_are_named(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Host(Subject(create=lambda services: command.create(settings, services)), tmp_path)
    assert words in str(refused.value)
