"""Turns a document into a `Config`, or into the list of everything that is wrong with it."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from isola_core.config.document import SIZE_LIMIT, DocumentError, parse_document
from isola_core.config.settings import (
    DEFAULT_HARNESS,
    CliJudgeConfig,
    Config,
    HarnessConfig,
    JudgeConfig,
    LlmKeys,
    LocalJudgeConfig,
    ManualJudgeConfig,
    NotebookKeys,
    OpenAICompatJudgeConfig,
    ProjectConfig,
    StoreConfig,
    unknown_name,
)
from isola_core.errors import ConfigError
from isola_core.paths import Paths
from isola_core.secrets import find_secrets, mask
from isola_core.text import is_blank, name_key, safe_label

_Section = TypeVar("_Section", bound=msgspec.Struct)

_JUDGES: Final[dict[str, type[msgspec.Struct]]] = {
    "local": LocalJudgeConfig,
    "openai_compat": OpenAICompatJudgeConfig,
    "cli": CliJudgeConfig,
    "manual": ManualJudgeConfig,
}
_HARNESSES: Final[dict[str, type[msgspec.Struct]]] = {"notebook": NotebookKeys, "llm": LlmKeys}
"""Types that are checked here; the others check their keys themselves when they are made."""

_SECRET_KEY: Final = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|token|auth[_-]?token"
    r"|password|passwd|passphrase|secret|client[_-]?secret|authorization|credentials?|bearer)"
)
_KEY: Final = re.compile(r"[^\s,]{1,64}")
_VARIABLES: Final = frozenset({"env_from"})
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USE_THE_ENVIRONMENT: Final = "put it in an environment variable and name it in api_key_env"


def load_config(path: Path | None = None, *, paths: Paths | None = None) -> Config:
    """The configuration in `path`; None: in the default place if there is one, else the defaults.

    Raises:
        ConfigError: with all problems, one line each, in `details["problems"]`.
    """
    file = path or (paths or Paths.from_environment()).config_file
    content = _read(file, needed=path is not None)
    if content is None:
        return Config()
    try:
        document = parse_document(content)
    except DocumentError as error:
        raise _refusal(file, list(error.problems)) from error
    reading = _Reading(file)
    config = reading.config(document)
    if reading.problems:
        raise _refusal(file, reading.problems)
    return config


def _read(file: Path, *, needed: bool) -> bytes | None:
    try:
        entry = file.stat()
        if not stat.S_ISREG(entry.st_mode):
            raise _refusal(file, ["it is not a file"])
        if entry.st_size > SIZE_LIMIT:
            raise _refusal(file, [f"the file is larger than {SIZE_LIMIT:,} bytes"])
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        if not needed and not os.path.lexists(file):
            return None
        raise _refusal(file, [f"there is no file {file}; `isola init` writes one"]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refusal(file, [f"it cannot be read: {reason}"]) from error


def _refusal(file: Path, problems: list[str]) -> ConfigError:
    name = safe_label(file.name, 80)
    lines = list(dict.fromkeys(f"{name}: {each}" for each in problems))
    return ConfigError("\n".join(lines), problems=lines, file=str(file))


class _Reading:
    """One file being checked. Every method notes problems and answers with what it could read."""

    def __init__(self, file: Path) -> None:
        self._folder = Path(os.path.abspath(file)).parent  # noqa: PTH100 - symlinks as given
        self.problems: list[str] = []

    def config(self, document: Mapping[str, object]) -> Config:
        self._refuse_secrets("", document)
        config = self._section(
            Config,
            document,
            "",
            {
                "judge": self._judge,
                "harness": self._harness,
                "harnesses": self._harnesses,
                "store": self._store,
                "keys": self._keys,
                "projects": self._projects,
            },
        )
        projects = document.get("projects")
        if isinstance(projects, list):
            harnesses = document.get("harnesses")
            self._check_harness_names(
                projects,
                [str(each) for each in harnesses] if isinstance(harnesses, Mapping) else [],
            )
            self._check_names(projects)
        return config or Config()

    def _note(self, where: str, problem: str) -> None:
        self.problems.append(f"{where}: {problem}" if where else problem)

    def _section(
        self,
        kind: type[_Section],
        given: object,
        where: str,
        special: Mapping[str, Callable[[object, str], object]] | None = None,
        skip: str = "",
    ) -> _Section | None:
        """`given` as a `kind`, field by field; None if any of it was wrong."""
        if not isinstance(given, Mapping):
            self._note(where, f"expected keys and values, got {_shown(given)}")
            return None
        before = len(self.problems)
        hints = get_type_hints(kind, include_extras=True)
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        for key in given:
            if key not in fields and key != skip:
                place = _joined(where, key)
                if not any(each.startswith(f"{place}: ") for each in self.problems):
                    self._note(place, _unknown_key(str(key), list(fields), skip))
        values: dict[str, Any] = {}
        for name, field in fields.items():
            place = _joined(where, name)
            if name not in given:
                if field.required:
                    self._note(place, f"missing; {_expected(hints[name])}")
            elif special and name in special:
                values[name] = special[name](given[name], place)
            else:
                values[name] = self._value(given[name], hints[name], place)
        if len(self.problems) > before:
            return None
        return kind(**values)

    def _value(self, given: object, hint: Any, where: str) -> object:
        try:
            return msgspec.convert(given, hint)
        except (msgspec.ValidationError, OverflowError):
            self._note(where, f"{_expected(hint)}, got {_shown(given)}")
            return None

    def _type(self, given: object, where: str, known: list[str] | None) -> str | None:
        """The type of a judge or a harness, which may also stand alone: `judge: manual`."""
        if isinstance(given, str):
            found: object = given
            place = where
        elif isinstance(given, Mapping):
            place = _joined(where, "type")
            if "type" not in given:
                self._note(place, f"missing; one of {', '.join(known or [*_HARNESSES, 'claude'])}")
                return None
            found = given["type"]
        else:
            self._note(where, f"expected keys and values, got {_shown(given)}")
            return None
        if not isinstance(found, str) or is_blank(found):
            self._note(place, f"expected the name of a type, got {_shown(found)}")
            return None
        if known is not None and found not in known:
            close = get_close_matches(found, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            self._note(place, f"{hint}Expected one of {', '.join(known)}, got {_shown(found)}")
            return None
        return found

    def _judge(self, given: object, where: str) -> JudgeConfig:
        kind = self._type(given, where, [*_JUDGES])
        if kind is None:
            return LocalJudgeConfig()
        section = given if isinstance(given, Mapping) else {}
        special = {"command": self._command} if kind == "cli" else {}
        found = self._section(_JUDGES[kind], section, where, special, skip="type")
        return found if isinstance(found, JudgeConfig) else LocalJudgeConfig()

    def _command(self, given: object, where: str) -> tuple[str, ...]:
        """A program and its arguments: a list, or a line that is split as a shell would."""
        words: object = given
        if isinstance(given, str):
            try:
                words = shlex.split(given)
            except ValueError as error:
                self._note(where, f"a quote is not closed ({str(error).lower()})")
                return ()
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(each, str) and "\0" not in each for each in words)
            or is_blank(words[0])
        ):
            expected = 'expected a program and its arguments, such as "claude -p" or [claude, -p]'
            self._note(where, f"{expected}, got {_shown(given)}")
            return ()
        return tuple(words)

    def _harness(self, given: object, where: str) -> HarnessConfig:
        kind = self._type(given, where, None)
        if kind is None:
            return HarnessConfig()
        section = given if isinstance(given, Mapping) else {}
        settings = {str(key): value for key, value in section.items() if key != "type"}
        if kind in _HARNESSES:
            self._section(_HARNESSES[kind], section, where, skip="type")
        return HarnessConfig(kind, settings)

    def _harnesses(self, given: object, where: str) -> dict[str, HarnessConfig]:
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            self._note(where, f"expected names and their harnesses, got {_shown(given)}")
            return {}
        found: dict[str, HarnessConfig] = {}
        for key, section in given.items():
            place = _joined(where, key)
            if key == DEFAULT_HARNESS:
                self._note(place, "this name means the harness of `harness:`, use another one")
            elif is_blank(key) or len(key) > 64:
                self._note(place, "expected a name of 1 to 64 characters")
            else:
                found[key] = self._harness(section, place)
        return found

    def _store(self, given: object, where: str) -> StoreConfig:
        if given is None:
            return StoreConfig()
        return self._section(StoreConfig, given, where, {"path": self._path}) or StoreConfig()

    def _keys(self, given: object, where: str) -> dict[str, tuple[str, ...]]:
        """An act's id, and one key (`ctrl+k`), several (`ctrl+k, f5`) or a list of them."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            self._note(where, f"expected acts and their keys, got {_shown(given)}")
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for act, keys in given.items():
            listed = keys.split(",") if isinstance(keys, str) else keys
            names = (
                tuple(each.strip().lower() for each in listed if isinstance(each, str))
                if isinstance(listed, list)
                else ()
            )
            if names and len(names) == len(listed) and all(map(_KEY.fullmatch, names)):
                found[str(act)] = names
            else:
                expected = "expected a key such as ctrl+k, or a list of keys"
                self._note(_joined(where, act), f"{expected}, got {_shown(keys)}")
        return found

    def _path(self, given: object, where: str) -> Path | None:
        """Relative to the configuration's folder; `~` is the home folder."""
        if given is None:
            return None
        if not isinstance(given, str) or is_blank(given) or "\0" in given:
            self._note(where, f"expected a path, got {_shown(given)}")
            return None
        try:
            path = Path(given).expanduser()
        except RuntimeError:
            self._note(where, f"there is no such home folder: {_shown(given)}")
            return None
        return Path(os.path.normpath(self._folder / path))

    def _projects(self, given: object, where: str) -> tuple[ProjectConfig, ...]:
        if given is None:
            return ()
        if not isinstance(given, list):
            self._note(where, f"expected a list of projects, got {_shown(given)}")
            return ()
        special = {"path": self._path, "name": self._name, "aliases": self._aliases}
        found = [
            self._section(ProjectConfig, each, f"{where}[{at}]", special)
            for at, each in enumerate(given)
        ]
        return tuple(each for each in found if each is not None)

    def _name(self, given: object, where: str) -> str:
        name = self._value(given, get_type_hints(ProjectConfig, include_extras=True)["name"], where)
        if isinstance(name, str) and name and not name_key(name):
            self._note(where, f"expected a name with a letter or digit in it, got {_shown(name)}")
        return name if isinstance(name, str) else ""

    def _aliases(self, given: object, where: str) -> tuple[str, ...]:
        if given is None:
            return ()
        if not isinstance(given, list):
            self._note(where, f"expected a list of names, got {_shown(given)}")
            return ()
        found = []
        for at, each in enumerate(given):
            if not isinstance(each, str) or not name_key(each) or len(each) > 64:
                expected = "expected a name of 1 to 64 characters"
                self._note(f"{where}[{at}]", f"{expected}, got {_shown(each)}")
            else:
                found.append(each)
        return tuple(found)

    def _check_harness_names(self, projects: list[object], harnesses: list[str]) -> None:
        known = [DEFAULT_HARNESS, *harnesses]
        for at, project in enumerate(projects):
            named = project.get("harness") if isinstance(project, Mapping) else None
            if isinstance(named, str) and named not in known:
                problem = unknown_name(safe_label(mask(named), 60), known, "harness")
                self._note(f"projects[{at}].harness", problem)

    def _check_names(self, projects: list[object]) -> None:
        """No id, name or alias leads to two projects; the wrong ones among them count too."""
        owners: dict[str, int] = {}
        for at, project in enumerate(projects):
            if not isinstance(project, Mapping):
                continue
            aliases = project.get("aliases")
            names = {"id": project.get("id"), "name": project.get("name")}
            if isinstance(aliases, list):
                names |= {f"aliases[{number}]": each for number, each in enumerate(aliases)}
            for field, name in names.items():
                key = name_key(name) if isinstance(name, str) else ""
                if key and (owner := owners.setdefault(key, at)) != at:
                    self._note(
                        f"projects[{at}].{field}", f"{_shown(name)} already means projects[{owner}]"
                    )

    def _refuse_secrets(
        self, where: str, value: object, key: str = "", *, variables: bool = False
    ) -> None:
        """No text in the file is a credential, nor the value of a key that is called like one.

        `variables`: the values below are names of environment variables, such as
        `env_from: {ANTHROPIC_API_KEY: WORK_KEY}`.
        """
        if isinstance(value, Mapping):
            for name, inner in value.items():
                place = _joined(where, name)
                if find_secrets(str(name)):
                    self._note(place, _USE_THE_ENVIRONMENT)
                below = variables or str(name) in _VARIABLES
                self._refuse_secrets(place, inner, str(name), variables=below)
        elif isinstance(value, list | tuple | set | frozenset):
            for at, inner in enumerate(value):
                self._refuse_secrets(f"{where}[{at}]", inner, key, variables=variables)
        elif isinstance(value, str | bytes | int | float) and not isinstance(value, bool):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else _written(value)
            if variables and _VARIABLE.fullmatch(text) and not find_secrets(text):
                return
            named = _SECRET_KEY.fullmatch(key) and not is_blank(text)
            if named or find_secrets(text) or find_secrets(f"{key}: {text}"):
                self._note(where, f"a key does not belong into the file, {_USE_THE_ENVIRONMENT}")


def _joined(where: str, key: object) -> str:
    name = safe_label(mask(str(key)), 60) or "?"
    return f"{where}.{name}" if where else name


def _unknown_key(key: str, allowed: list[str], skip: str) -> str:
    close = get_close_matches(key, allowed, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    listed = ", ".join(sorted({*allowed, *([skip] if skip else [])}))
    return f"unknown key; {hint}Allowed: {listed}"


def _expected(hint: Any) -> str:
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            return f"expected {meta.description}"
    inner = [each for each in getattr(hint, "__args__", ()) if each not in (type(None), ...)]
    if isinstance(hint, type) or not inner:
        return f"expected {'text' if hint is str else getattr(hint, '__name__', 'another value')}"
    list_of = getattr(hint, "__origin__", None) is tuple
    return f"expected a list, each {_expected(inner[0])[9:]}" if list_of else _expected(inner[0])


def _shown(value: object) -> str:
    """What was given, for a problem's line: short, on one line, masked."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(safe_label(mask(value), 40))
        case int() | float():
            return safe_label(mask(_written(value)), 40)
        case Mapping():
            return "keys and values"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def _written(value: str | int | float) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than Python writes out
        return "a huge number"
