"""What every subcommand shares: the options --config and --json, output, and the exit codes.

Exit codes: 0 done; 1 refused or failed (the error's `code` says why; for `isola doctor`: a check
failed); 2 only from `isola doctor`: a person is needed; 3 only from what sends messages: stored,
and waiting for your choice of a project; 64 the command line itself is wrong; 130 interrupted.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

import click

from isola_core.errors import IsolaError

EXIT_FAILED: Final = 1
EXIT_NEED_HUMAN: Final = 2
EXIT_NEEDS_CONFIRMATION: Final = 3
EXIT_USAGE: Final = 64
EXIT_INTERRUPTED: Final = 130

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_INVISIBLE: Final = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What JSON leaves as it is: C1 and bidi controls (a terminal acts on them), lone surrogates."""


@dataclass(slots=True)
class Invocation:
    """The options that stand before or after a subcommand's name.

    `config` is the file that --config names, None means the default place. `json` asks for one JSON
    object on stdout instead of text for people.
    """

    config: Path | None = None
    json: bool = False


def config_option(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Add `--config FILE`, kept in the `Invocation`."""
    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_keep_config,
        help="Read this configuration instead of the default one.",
    )(function)


def with_invocation(
    function: Callable[Concatenate[Invocation, _Arguments], _Result],
) -> Callable[_Arguments, _Result]:
    """Give a subcommand `--config` and `--json`, and its function the `Invocation` first.

    Stands below `@click.command()`. The function may return an exit code; None is 0.
    """

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        return function(_invocation(click.get_current_context()), *args, **kwargs)

    json_option = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_json,
        help="Print JSON, errors too.",
    )
    return config_option(json_option(call))


def print_json(value: object) -> None:
    """Print one value as one line of JSON that cannot act on the terminal it is shown in."""
    unicode_out = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not unicode_out, default=str)
    print(_INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_error(code: str, message: str, details: Mapping[str, object], as_json: bool) -> None:
    """Say what went wrong: an `error` object on stdout, or `isola: message` on stderr."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "details": dict(details)}})
    else:
        shown = "".join(
            each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}"
            for each in message
        )
        print(f"isola: {shown}", file=sys.stderr)


def print_refusal(error: IsolaError, as_json: bool) -> None:
    """Say what the core refused."""
    print_error(error.code, error.message, error.details, as_json)


def _invocation(context: click.Context) -> Invocation:
    return context.find_root().ensure_object(Invocation)


def _keep_config(
    context: click.Context, _parameter: click.Parameter, value: Path | None
) -> Path | None:
    if value is not None:
        _invocation(context).config = value
    return value


def _keep_json(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        _invocation(context).json = True
    return value
