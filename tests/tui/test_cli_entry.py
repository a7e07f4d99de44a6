"""The command line's entry: what is imported, what an error looks like, which code it ends with."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from isola_core import __version__
from isola_core.errors import ConfigError, IsolaError
from isola_tui import cli
from isola_tui.cli.invocation import Invocation, print_json, with_invocation

Register = Callable[[str, click.Command], None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Put a command of the test's own under a name that the command line knows."""

    def put(name: str, command: click.Command) -> None:
        monkeypatch.setitem(cli.COMMANDS, name, cli.Subcommand(f"{__name__}_made:made", "Made."))
        module = type(sys)(f"{__name__}_made")
        vars(module)["made"] = command
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return put


def refusing(error: BaseException) -> click.Command:
    @click.command()
    @with_invocation
    def made(_invocation: Invocation) -> None:
        raise error

    return made


def isola(*arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """Run the entry in an interpreter of its own."""
    program = script or "import sys; from isola_tui.__main__ import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_the_version_is_answered_before_click_is_imported() -> None:
    script = """if True:
        import sys
        before = set(sys.modules)
        from isola_tui.__main__ import main
        code = main()
        print(sorted(set(sys.modules) - before))
        sys.exit(code)
    """
    answer = isola("--version", script=script)
    version, modules = answer.stdout.splitlines()
    assert version == f"isola {__version__}"
    assert modules == str(["isola_core", "isola_tui", "isola_tui.__main__"])


def test_the_version_is_the_same_with_other_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--config", "x.yaml", "--version"]) == 0
    assert capsys.readouterr().out == f"isola {__version__}\n"


def test_help_lists_every_command_without_importing_one() -> None:
    script = """if True:
        import sys
        from isola_tui.cli import COMMANDS, run
        code = run(["--help"])
        loaded = [entry.target for entry in COMMANDS.values()
                  if entry.target.partition(":")[0] in sys.modules]
        sys.exit(f"imported {loaded}" if loaded or "textual" in sys.modules else code)
    """
    answer = isola(script=script)
    assert answer.returncode == 0, answer.stderr
    for name, entry in cli.COMMANDS.items():
        assert name in answer.stdout
        assert entry.help.split(":")[0][:20] in answer.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_listed_command_is_there_and_describes_itself(name: str) -> None:
    module, _, attribute = cli.COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.help or command.short_help


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["docter"], "Did you mean doctor?"),
        (["frobnicate"], "isola --help"),
        (["--frobnicate"], "--frobnicate"),
        (["--config"], "--config"),
    ],
)
def test_wrong_usage_ends_with_64_and_says_what_was_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 64
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""


def test_wrong_usage_with_json_is_an_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["frobnicate", "--json"]) == 64
    output = capsys.readouterr()
    assert json.loads(output.out)["error"]["code"] == "usage"
    assert output.err == ""


def test_a_refusal_is_one_line_on_stderr(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("tick", refusing(ConfigError("no such file: \x1b[31mred\x9b")))
    assert cli.run(["tick"]) == 1
    output = capsys.readouterr()
    assert output.err == "isola: no such file: �[31mred�\n"
    assert output.out == ""


def test_a_refusal_with_json_has_code_message_and_details(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("tick", refusing(ConfigError("two problems", problems=["a", Path("b")])))
    assert cli.run(["tick", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {
        "code": "config",
        "message": "two problems",
        "details": {"problems": ["a", "b"]},
    }


@pytest.mark.parametrize("kind", [IsolaError, *IsolaError.__subclasses__()])
def test_every_kind_of_refusal_ends_with_1(register: Register, kind: type[IsolaError]) -> None:
    register("tick", refusing(kind("no")))
    assert cli.run(["tick"]) == 1


@pytest.mark.parametrize("before", [True, False])
def test_the_configuration_is_named_before_or_after_the_command(
    register: Register, before: bool
) -> None:
    seen: list[Invocation] = []

    @click.command()
    @with_invocation
    def made(invocation: Invocation) -> int:
        seen.append(invocation)
        return 2

    register("tick", made)
    option = ["--config", "my.yaml"]
    assert cli.run([*option, "tick", "--json"] if before else ["tick", "--json", *option]) == 2
    assert seen == [Invocation(config=Path("my.yaml"), json=True)]


def test_an_interrupt_ends_with_130(register: Register) -> None:
    register("tick", refusing(KeyboardInterrupt()))
    assert cli.run(["tick"]) == 130


def test_no_command_opens_the_terminal_program_with_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Path | None] = []

    def open_terminal(config: Path | None) -> int:
        opened.append(config)
        return 7

    module = type(sys)("made_terminal")
    vars(module)["run"] = open_terminal
    monkeypatch.setitem(sys.modules, "made_terminal", module)
    monkeypatch.setattr(cli, "TERMINAL", "made_terminal:run")
    assert cli.run(["--config", "c.yaml"]) == 7
    assert cli.run([]) == 7
    assert opened == [Path("c.yaml"), None]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    program = "import sys; from isola_tui.__main__ import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-c", program, "--help"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        os.close(writing)
        _, said = child.communicate(timeout=60)
    assert said == ""
    assert child.returncode in {1, -signal.SIGPIPE}


@pytest.mark.parametrize(
    "text", ["\x1b]0;title\x07", "\x9b31m", "\u202eabc", "回滚发票迁移", "\ud800", 'a"b\\c\n']
)
def test_printed_json_reads_back_and_never_acts_on_the_terminal(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json({"text": text})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": text}
    assert printed.removesuffix("\n").isprintable()
