"""The settings of a command harness: how a program is started, and where its answer stands."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec

from isola_harnesses.command_output import Shape, Step, parse_path

PLACEHOLDER: Final = re.compile(r"\{(prompt|session|cwd)\}")
"""What is filled in; anything else in braces is text."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Path = Annotated[str, msgspec.Meta(min_length=1)]
_Argv = Annotated[list[str], msgspec.Meta(min_length=1)]


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `harness:` section of type `command`."""

    argv: _Argv
    """The program and its arguments; `{prompt}`, `{session}` and `{cwd}` are filled in."""
    resume: _Argv | None = None
    """The same for every turn after the first; None uses `argv` again."""
    prompt: Literal["stdin", "argument"] | None = None
    """None: argument where `argv` has `{prompt}`, else stdin."""
    reply: Literal["text", "json", "last-json-line"] = "text"
    """All of stdout; a JSON document anywhere; the last JSON line that fits."""
    reply_path: _Path | None = None
    """Where in the JSON the reply stands, such as `result` or `payloads[0].text`."""
    reply_match: dict[_Path, str | int | bool] = msgspec.field(default_factory=dict)
    """What the reply's JSON must say, such as `type: result`."""
    error_path: _Path | None = None
    """Where the JSON names an error; the usual envelopes are known without it."""
    session_path: _Path | None = None
    """Where the JSON names the session's id."""
    env_from: dict[_Name, _Name] = msgspec.field(default_factory=dict)
    """Variables of the command, each with the name of the variable it is taken from."""
    timeout_s: _Seconds = 900.0
    idle_timeout_s: _Seconds | None = None
    """Seconds without any output; None waits for `timeout_s`."""
    max_output_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2**28)] = 8 * 2**20

    def __post_init__(self) -> None:
        problems = [*self._argv_problems(), *self._reply_problems()]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def by_argument(self) -> bool:
        """Whether the prompt is an argument."""
        if self.prompt is not None:
            return self.prompt == "argument"
        return any("{prompt}" in each for each in self.argv)

    def shape(self) -> Shape:
        """Where in a document what stands."""
        return Shape(
            reply=steps(self.reply_path),
            match={parse_path(path): value for path, value in self.reply_match.items()},
            error=steps(self.error_path),
            session=steps(self.session_path),
        )

    def _argv_problems(self) -> list[str]:
        problems = []
        templates = {"argv": self.argv, "resume": self.resume}
        for name, argv in templates.items():
            if argv is None:
                continue
            if any("{prompt}" in each for each in argv) is not self.by_argument:
                where = (
                    "needs {prompt}" if self.by_argument else "has {prompt}, and prompt is stdin"
                )
                problems.append(f"{name}: it {where}")
            program = argv[0]
            if not program or PLACEHOLDER.search(program):
                problems.append(f"{name}: its first word is the program")
            elif "/" in program and not program.startswith(("/", "~/")):
                problems.append(f"{name}: the program is a name on PATH or a whole path")
            if any("\x00" in each for each in argv):
                problems.append(f"{name}: it has a NUL character")
        knows_id = self.session_path or any("{session}" in each for each in self.argv)
        if self.resume is not None and not knows_id:
            problems.append("resume: the session's id is unknown; set session_path")
        if self.resume is not None and not any("{session}" in each for each in self.resume):
            problems.append("resume: it needs {session}, or another session might be continued")
        if self.session_path and not any("{session}" in each for each in self.resume or self.argv):
            problems.append("session_path: no {session} takes what it finds")
        return problems

    def _reply_problems(self) -> list[str]:
        problems = []
        paths = {
            "reply_path": self.reply_path,
            "error_path": self.error_path,
            "session_path": self.session_path,
            **{f"reply_match.{path}": path for path in self.reply_match},
        }
        for name, path in paths.items():
            try:
                steps(path)
            except ValueError as error:
                problems.append(f"{name}: {error}")
            if self.reply == "text" and path is not None:
                problems.append(f"{name}: the reply is text; set reply to json or last-json-line")
        if self.reply != "text" and self.reply_path is None:
            problems.append("reply_path: it is needed, the reply is JSON")
        return problems


def steps(path: str | None) -> tuple[Step, ...]:
    """A configured path; raises `ValueError` for what is none."""
    return parse_path(path) if path is not None else ()
