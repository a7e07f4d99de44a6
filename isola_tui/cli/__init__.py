"""The commands of `isola`: one module for each subcommand, imported when it is called.

This file knows their names and one line about each, so that `isola --help` and a mistyped name need
nothing else. No subcommand opens the terminal program.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from isola_core import __version__
from isola_core.errors import IsolaError
from isola_tui.cli.invocation import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Invocation,
    config_option,
    print_error,
    print_refusal,
)


@dataclass(frozen=True, slots=True)
class Subcommand:
    """Where a subcommand's click command is ("module:attribute"), and what the list says of it."""

    target: str
    help: str


COMMANDS: Final[dict[str, Subcommand]] = {
    "chat": Subcommand("isola_tui.cli.chat:chat", "Send messages from the shell or a pipe."),
    "decisions": Subcommand("isola_tui.cli.decisions:decisions", "List where messages went."),
    "confirm": Subcommand("isola_tui.cli.confirm:confirm", "Answer a card: this project it is."),
    "correct": Subcommand("isola_tui.cli.correct:correct", "Wrong project: move a message."),
    "withdraw": Subcommand("isola_tui.cli.withdraw:withdraw", "Take a message back altogether."),
    "resolve": Subcommand(
        "isola_tui.cli.resolve:resolve", "Settle a delivery whose outcome is unknown."
    ),
    "explain": Subcommand("isola_tui.cli.explain:explain", "Say why a message went where it went."),
    "projects": Subcommand(
        "isola_tui.cli.projects:projects", "Add, list, edit and retire projects."
    ),
    "recall": Subcommand("isola_tui.cli.recall:recall", "Search one project's memory."),
    "session": Subcommand("isola_tui.cli.session:session", "Start a project's session afresh."),
    "tick": Subcommand("isola_tui.cli.tick:tick", "Do once what is due: commits, writes, rewinds."),
    "init": Subcommand(
        "isola_tui.cli.init:init", "Write a configuration; offers git repositories."
    ),
    "doctor": Subcommand(
        "isola_tui.cli.doctor:doctor", "Check this installation; changes nothing."
    ),
}

TERMINAL: Final = "isola_tui.app:run"
"""The terminal program: `run(config: Path | None) -> int | None`."""


TRACEBACK_VARIABLE: Final = "ISOLA_TRACEBACK"
"""Set it to see where an unexpected error came from."""


class LazyGroup(click.Group):
    """A group that imports a subcommand only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a person meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand; None for a name that does not exist."""
        if cmd_name not in COMMANDS:
            return None
        command = _load(COMMANDS[cmd_name].target)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name].target} is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table above, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; an unknown name is answered with the nearest ones."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else " See isola --help."
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 doctor needs a person, 3 a message waits "
    "for your choice, 64 wrong usage, 130 interrupted.",
)
@click.version_option(__version__, message="isola %(version)s")
@config_option
@click.pass_context
def isola(context: click.Context) -> int | None:
    """One entry line for many projects. Without a command: the terminal program."""
    if context.invoked_subcommand is not None:
        return None
    open_terminal = _load(TERMINAL)
    if not callable(open_terminal):
        raise TypeError(f"{TERMINAL} cannot be called")
    code = open_terminal(context.ensure_object(Invocation).config)
    return code if isinstance(code, int) else None


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code, one of `isola_tui.cli.invocation`'s."""
    invocation = Invocation()
    try:
        result = isola.main(
            list(arguments), prog_name="isola", standalone_mode=False, obj=invocation
        )
        sys.stdout.flush()
    except click.UsageError as error:
        if invocation.json or "--json" in arguments:
            print_error("usage", error.format_message(), {}, as_json=True)
        else:
            error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        print_error("invalid_input", error.format_message(), {}, invocation.json)
        return EXIT_FAILED
    except IsolaError as error:
        print_refusal(error, invocation.json)
        return EXIT_FAILED
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _leave_stdout()
        return EXIT_FAILED
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        message = f"a fault of isola: {type(error).__name__}: {error} ({TRACEBACK_VARIABLE}=1 "
        print_error("internal", message + "shows where)", {}, invocation.json)
        return EXIT_FAILED
    return result if isinstance(result, int) else 0


def _leave_stdout() -> None:
    """Nobody reads our output any more: keep the interpreter from trying again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(target: str) -> object:
    module, _, attribute = target.partition(":")
    loaded: object = getattr(importlib.import_module(module), attribute)
    return loaded
