"""What the configuration holds, as types. The descriptions are what a problem says was expected."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from isola_core.errors import ConfigError
from isola_core.model import Project
from isola_core.paths import Paths

DEFAULT_HARNESS: Final = "default"
"""The name under which projects know the harness of the `harness:` section."""

BASE_URL: Final = "an http or https address such as http://127.0.0.1:11434/v1"

BaseUrl = Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$", description=BASE_URL)]
EnvName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$",
        description="the name of an environment variable, such as OPENAI_API_KEY",
    ),
]
ModelName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"\S", description="the name of a model")
]
TurnSeconds = Annotated[
    float, Meta(ge=0.1, le=86_400, description="a number of seconds from 0.1 to 86400")
]
JudgeSeconds = Annotated[
    float, Meta(ge=0.1, le=600, description="a number of seconds from 0.1 to 600")
]
ThemeName = Annotated[
    str, Meta(min_length=1, max_length=64, description="the name of a theme, such as light")
]
Identifier = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,62}\Z",
        description="1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9",
    ),
]


class LocalJudgeConfig(msgspec.Struct, frozen=True, tag="local"):
    """The built-in judge: names, descriptions and words; nothing is asked."""


class OpenAICompatJudgeConfig(msgspec.Struct, frozen=True, tag="openai_compat", kw_only=True):
    """A model behind an OpenAI-compatible endpoint; `base_url` ends before `/chat/completions`."""

    base_url: BaseUrl
    model: ModelName
    api_key_env: EnvName | None = None
    timeout_s: JudgeSeconds = 20.0


class CliJudgeConfig(msgspec.Struct, frozen=True, tag="cli", kw_only=True):
    """A program that is asked; never through a shell. `prompt` says where the question goes."""

    command: tuple[str, ...]
    timeout_s: JudgeSeconds = 60.0
    prompt: Annotated[
        Literal["stdin", "argument"], Meta(description="stdin or argument (the last one)")
    ] = "stdin"


class ManualJudgeConfig(msgspec.Struct, frozen=True, tag="manual"):
    """The person decides what the rules cannot."""


JudgeConfig = LocalJudgeConfig | OpenAICompatJudgeConfig | CliJudgeConfig | ManualJudgeConfig


class NotebookKeys(msgspec.Struct, frozen=True):
    """The keys of a harness of type `notebook`: none."""


class LlmKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a harness of type `llm`, to be checked here; the harness reads them itself."""

    base_url: BaseUrl
    model: ModelName
    api_key_env: EnvName | None = None
    max_context_tokens: Annotated[
        int, Meta(ge=256, le=10_000_000, description="a whole number from 256 to 10000000")
    ] = 16_000
    timeout_s: TurnSeconds = 300.0
    idle_timeout_s: TurnSeconds = 120.0
    system: Annotated[str, Meta(max_length=100_000, description="text")] = ""


class HarnessConfig(msgspec.Struct, frozen=True):
    """One backend: its type, and the keys of its section as the harness gets them."""

    type: str = "notebook"
    settings: dict[str, object] = {}


class StoreConfig(msgspec.Struct, frozen=True):
    """Where the database is; None: in the data folder."""

    path: Path | None = None


class ProjectConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One project. `id` is stable: the name may change, the id says that it is still the same."""

    id: Identifier
    name: Annotated[str, Meta(max_length=120, description="a name of at most 120 characters")] = ""
    description: Annotated[
        str, Meta(max_length=2000, description="text of at most 2000 characters")
    ] = ""
    aliases: tuple[
        Annotated[str, Meta(max_length=64, description="a name of at most 64 characters")], ...
    ] = ()
    path: Path | None = None
    harness: str | None = None
    protected: Annotated[bool, Meta(description="true or false")] = False
    lanes: tuple[Identifier, ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a person may set. All of it has a default that needs no key and no agent.

    `isolation_s`: how long an attribution can be taken back before it is committed. `auto_at`: the
    confidence from which a message is sent without asking. `inertia_s`: how long the last project
    of a conversation counts. `language`: of the interface; None is the locale's.
    `theme`, `mouse` and `keys` (an act's id, and the keys that do it) are the screen's: it knows
    which themes and acts there are.
    """

    judge: JudgeConfig = LocalJudgeConfig()
    harness: HarnessConfig = HarnessConfig()
    harnesses: dict[str, HarnessConfig] = {}
    store: StoreConfig = StoreConfig()
    isolation_s: Annotated[
        float, Meta(ge=0, le=604_800, description="a number of seconds from 0 to 604800")
    ] = 300.0
    auto_at: Annotated[float, Meta(ge=0.5, le=1, description="a number from 0.5 to 1")] = 0.95
    inertia_s: Annotated[
        float, Meta(ge=0, le=2_678_400, description="a number of seconds from 0 to 2678400")
    ] = 14_400.0
    language: Annotated[Literal["en", "zh"] | None, Meta(description="en or zh")] = None
    theme: ThemeName | None = None
    mouse: Annotated[bool, Meta(description="true or false")] = True
    keys: dict[str, tuple[str, ...]] = {}
    projects: tuple[ProjectConfig, ...] = ()

    @property
    def judge_is_local(self) -> bool:
        """Whether the built-in judge takes part in stage 3."""
        return not isinstance(self.judge, ManualJudgeConfig)

    def store_path(self, paths: Paths) -> Path:
        """The database's file."""
        return self.store.path or paths.database

    def harness_of(self, project: Project) -> str:
        """The name of the harness that a project uses."""
        return project.harness or DEFAULT_HARNESS

    def harness_settings(self, name: str) -> Mapping[str, object]:
        """The section of a harness: its `type` and its own keys.

        Raises `ConfigError` where the configuration has none of that name.
        """
        if name == DEFAULT_HARNESS:
            found = self.harness
        elif name in self.harnesses:
            found = self.harnesses[name]
        else:
            known = [DEFAULT_HARNESS, *self.harnesses]
            problem = f"harnesses: {unknown_name(name, known, 'harness')}"
            raise ConfigError(
                f"{problem} Add it to the configuration, or give the project another one with "
                "`isola projects edit PROJECT --harness NAME`.",
                problems=[problem],
            )
        return {"type": found.type, **found.settings}

    def key_names(self) -> dict[str, str]:
        """Every `api_key_env`: the variable's name, and the section that asks for it."""
        found: dict[str, str] = {}
        if isinstance(self.judge, OpenAICompatJudgeConfig) and self.judge.api_key_env:
            found[self.judge.api_key_env] = "judge"
        sections = {"harness": self.harness}
        sections |= {f"harnesses.{name}": each for name, each in self.harnesses.items()}
        for section, harness in sections.items():
            name = harness.settings.get("api_key_env")
            if isinstance(name, str):
                found.setdefault(name, section)
        return found


def unknown_name(name: str, known: list[str], what: str) -> str:
    """`there is no harness 'x', did you mean y? Known: a, b.`"""
    close = get_close_matches(name, known, n=1)
    hint = f", did you mean {close[0]}?" if close else "."
    return f"there is no {what} {name!r}{hint} Known: {', '.join(known)}."
