"""Finds harnesses by type: the built-in ones, and plugins of the entry point group isola.harnesses.

A plugin is a callable `create(settings, services) -> Harness`. `settings` are the keys of its
`harness:` section without `type`; it checks them itself and raises `ConfigError` naming each wrong
one. A plugin is imported only when its type is asked for, and a broken one takes nothing down: it
is reported by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, cast

from isola_core.errors import ConfigError
from isola_core.ports import Clock, Harness, History

GROUP: Final = "isola.harnesses"

_BUILT_IN: Final = {
    "claude": "isola_harnesses.claude:create",
    "command": "isola_harnesses.command:create",
    "llm": "isola_harnesses.llm:create",
    "notebook": "isola_harnesses.notebook:create",
}
"""Known without metadata too, so that a source checkout that was never installed works."""


@dataclass(frozen=True, slots=True)
class HarnessServices:
    """What a harness gets from the program.

    `env` is the only environment it may read. `state_dir` is a private folder for its own files.
    """

    history: History
    clock: Clock
    env: Mapping[str, str]
    state_dir: Path


Factory = Callable[[Mapping[str, object], HarnessServices], Harness]


@dataclass(frozen=True, slots=True)
class HarnessType:
    """One type of harness and whether it can be loaded; `problem` is "" where it can."""

    name: str
    source: str
    problem: str = ""


def known_types() -> tuple[str, ...]:
    """The names of all types, sorted; nothing is imported."""
    return tuple(sorted({*_BUILT_IN, *(each.name for each in _plugins())}))


def inspect_types() -> tuple[HarnessType, ...]:
    """Load every type and say which ones are broken and why, for the readiness checks."""
    found = []
    for name in known_types():
        source = _source(name)
        try:
            _load(name)
        except ConfigError as error:
            found.append(HarnessType(name, source, error.message))
        else:
            found.append(HarnessType(name, source))
    return tuple(found)


def create_harness(settings: Mapping[str, object], name: str, services: HarnessServices) -> Harness:
    """The harness that `settings` describe; `name` is what the configuration calls it.

    Raises `ConfigError` for an unknown type (listing the known ones), for wrong settings, and for
    a plugin that cannot be loaded or fails.
    """
    kind = settings.get("type")
    if not isinstance(kind, str) or not kind:
        known = ", ".join(known_types())
        problem = f"The harness {name} has no type; known are {known}."
        raise ConfigError(problem, problems=[f"type: one of {known}"])
    factory = _load(kind)
    own = {key: value for key, value in settings.items() if key != "type"}
    try:
        harness = factory(own, services)
    except ConfigError as error:
        raise ConfigError(f"Harness {name}: {error.message}", **error.details) from error
    except Exception as error:
        raise _broken(kind, f"it failed to start: {_said(error)}") from error
    if not isinstance(harness, Harness):
        raise _broken(kind, "what it made lacks a method of the harness contract")
    return harness


def _plugins() -> list[EntryPoint]:
    """Plugins of other distributions; a built-in's name is never taken over by one."""
    return [each for each in entry_points(group=GROUP) if each.name not in _BUILT_IN]


def _source(name: str) -> str:
    """Where a type comes from, for people."""
    for plugin in _plugins():
        if plugin.name == name:
            return plugin.dist.name if plugin.dist else plugin.value
    return "built in"


def _load(name: str) -> Factory:
    try:
        factory = _find(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ConfigError):
            raise
        raise _broken(name, f"it cannot be imported: {_said(error)}") from error
    if not callable(factory):
        raise _broken(name, "its entry point is not a function")
    return cast("Factory", factory)


def _find(name: str) -> object:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)
    plugins = [each for each in _plugins() if each.name == name]
    if not plugins:
        known = known_types()
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        listed = ", ".join(known)
        raise ConfigError(
            f"There is no harness type {name!r}; known are {listed}.{hint}",
            problems=[f"type: {name!r} is not one of {listed}"],
        )
    if len({each.value for each in plugins}) > 1:
        raise _broken(name, "several plugins claim this name: uninstall all but one")
    return plugins[0].load()


def _broken(name: str, reason: str) -> ConfigError:
    """A plugin that cannot be used: named, with where it came from."""
    source = _source(name)
    text = f"The harness type {name!r} ({source}) is broken: {reason}."
    return ConfigError(text, problems=[f"type: {text}"])


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
