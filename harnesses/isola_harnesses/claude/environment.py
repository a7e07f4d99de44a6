"""What a Claude Code child is started with: settings, arguments, environment, folders.

The child gets the person's environment without anything that says "you run inside another agent":
`CLAUDECODE` makes Claude Code refuse to start, and tmux's or Isola's own variables would let it act
on the program that drives it. No value of the environment is ever stored or printed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from isola_core.errors import HarnessError
from isola_harnesses.surroundings import without_surroundings

_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]

PermissionMode = Literal[
    "default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"
]


class ClaudeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a `type: claude` section.

    `env_from` maps a variable of the child to the name of the variable whose value it gets, so that
    two configurations can use two accounts and no key stands in the file. `timeout_s` bounds one
    turn (time spent waiting for the person's answer does not count), None means no limit.
    `sleep_after_s` ends an idle child; the next message wakes the same session.
    """

    binary: str = "claude"
    mode: Literal["stream"] = "stream"
    model: str | None = None
    permission_mode: PermissionMode = "default"
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ("ListAgents", "SendMessage")
    """By default the tools by which one project's session could find and write to another's."""
    append_system_prompt: str | None = None
    auto_memory: bool = True
    """The notes that Claude Code itself keeps, one set for each git repository."""
    background_tasks: bool = False
    """With them, a subagent's answer and a command's end come as turns that the agent begins by
    itself, after the reply to the message; without, a turn holds all that it set off (measured)."""
    env_from: dict[_Name, _Name] = msgspec.field(default_factory=dict)
    timeout_s: _Seconds | None = None
    sleep_after_s: _Seconds = 1800.0

    def __post_init__(self) -> None:
        for tool in (*self.allowed_tools, *self.disallowed_tools):
            if not tool.strip() or tool.startswith("-"):
                raise ValueError("allowed_tools, disallowed_tools: a tool has a name")
        if not self.binary.strip():
            raise ValueError("binary: it is empty")


_ALWAYS: Final = {"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1"}
"""With mentions on, `@/any/file` in a message is read at once, outside the folder too and without
a permission question (measured). The agent still sees the text and can ask to read the file."""


_ONE_TURN: Final = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
}


_LATER_TOOLS: Final = ("ScheduleWakeup", "CronCreate", "Monitor")


def child_environment(settings: ClaudeSettings, env: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a child. Raises `HarnessError` where `env_from` names nothing."""
    child = without_surroundings(env)
    child.update(_ALWAYS)
    if not settings.auto_memory:
        child["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
    if not settings.background_tasks:
        child.update(_ONE_TURN)
    for name, source in settings.env_from.items():
        if source not in env:
            raise HarnessError(
                f"The environment variable {source} is not set; the Claude Code harness takes "
                f"{name} from it (env_from)."
            )
        child[name] = env[source]
    return child


def find_binary(settings: ClaudeSettings, env: Mapping[str, str]) -> Path:
    """The program to start. Raises `HarnessError` saying how to get it."""
    name = settings.binary
    if name.startswith("~"):
        name = str(Path(env.get("HOME", "~")) / name[1:].lstrip("/"))
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        raise HarnessError(
            f"Claude Code is not found: there is no program {settings.binary!r} on PATH. Install "
            "it (npm install -g @anthropic-ai/claude-code) or set `binary` of the harness."
        )
    return Path(found).absolute()


def arguments(
    settings: ClaudeSettings, binary: Path, session_id: str, *, resume: bool
) -> list[str]:
    """The argument list of one long-lived child in stream mode."""
    argv = [str(binary), "-p"]
    argv += ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    argv += ["--include-partial-messages", "--permission-prompt-tool", "stdio"]
    argv += ["--permission-mode", settings.permission_mode]
    if settings.model:
        argv += ["--model", settings.model]
    if settings.append_system_prompt:
        argv += ["--append-system-prompt", settings.append_system_prompt]
    if settings.allowed_tools:
        argv += ["--allowedTools", *settings.allowed_tools]
    disallowed = list(settings.disallowed_tools)
    if not settings.background_tasks:
        disallowed += [each for each in _LATER_TOOLS if each not in disallowed]
    if disallowed:
        argv += ["--disallowedTools", *disallowed]
    return [*argv, "--resume" if resume else "--session-id", session_id]


def config_home(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps transcripts and sessions: CLAUDE_CONFIG_DIR, else ~/.claude."""
    if configured := env.get("CLAUDE_CONFIG_DIR"):
        return Path(configured)
    return _home(env) / ".claude"


def state_file(env: Mapping[str, str]) -> Path:
    """Claude Code's own state: accepted folders, approved keys."""
    if configured := env.get("CLAUDE_CONFIG_DIR"):
        return Path(configured) / ".claude.json"
    return _home(env) / ".claude.json"


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()
