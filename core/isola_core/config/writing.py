"""Writes a configuration as `isola init` leaves it: short comments, private, never over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import yaml

from isola_core.config.settings import Config, HarnessConfig, JudgeConfig, ProjectConfig
from isola_core.errors import Conflict
from isola_core.paths import ensure_private_dir, write_private

_HEAD = """\
# Isola's configuration. Everything here has a default; what you delete falls back to it.
# Keys and passwords do not belong here: name their environment variables (api_key_env).
"""


def dump_config(config: Config) -> str:
    """The configuration as YAML that `load_config` reads back to the same."""
    parts = [
        _HEAD,
        _part(
            "Who decides where rules cannot: local, openai_compat, cli, manual.",
            {"judge": _judge(config.judge)},
        ),
        _part(
            "The backend that answers: notebook (no model), llm, claude, command, or a plugin's.",
            {"harness": _harness(config.harness)},
        ),
    ]
    if config.harnesses:
        named = {name: _harness(each) for name, each in config.harnesses.items()}
        parts.append(_part("More backends, for `harness:` of a project.", {"harnesses": named}))
    if config.store.path:
        parts.append(_part("The database.", {"store": {"path": str(config.store.path)}}))
    parts += [
        _part("Seconds in which a message can be taken back before its project remembers it.",
              {"isolation_s": _number(config.isolation_s)}),
        _part("The confidence from which a message is sent without asking, 0.5 to 1.",
              {"auto_at": _number(config.auto_at)}),
        _part("Seconds for which a conversation's last project counts.",
              {"inertia_s": _number(config.inertia_s)}),
    ]  # fmt: skip
    if config.language:
        parts.append(_part("The interface's language: en or zh.", {"language": config.language}))
    if config.theme:
        parts.append(_part("The screen's colours.", {"theme": config.theme}))
    if not config.mouse:
        parts.append(_part("Whether the screen takes the mouse.", {"mouse": False}))
    if config.keys:
        keys = {act: list(each) for act, each in config.keys.items()}
        parts.append(_part("Keys of your own; docs/keys.md lists the acts.", {"keys": keys}))
    parts.append(
        _part(
            "Your projects. An id never changes; a project that is removed here is not forgotten.",
            {"projects": [_project(each) for each in config.projects]},
        )
    )
    return "\n".join(parts)


def write_config(config: Config, path: Path, *, force: bool = False) -> None:
    """Write the file as a whole and private. Without `force` an existing one stays as it is.

    Raises:
        Conflict: there is a file already.
        StoreError: it cannot be written.
    """
    if not path.parent.exists():
        ensure_private_dir(path.parent)
    try:
        write_private(path, dump_config(config).encode(), replace=force)
    except FileExistsError as error:
        raise Conflict(
            f"{path} exists already; nothing was changed. `isola init --force` replaces it.",
            existing=str(path),
        ) from error


def _part(comment: str, value: Mapping[str, object]) -> str:
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=10_000)
    return f"# {comment}\n{text}"


def _judge(judge: JudgeConfig) -> dict[str, object]:
    kind = str(judge.__struct_config__.tag)
    return {"type": kind, **_given(judge)}


def _harness(harness: HarnessConfig) -> dict[str, object]:
    return {"type": harness.type, **harness.settings}


def _project(project: ProjectConfig) -> dict[str, object]:
    return _given(project)


def _given(section: msgspec.Struct) -> dict[str, object]:
    """The fields that differ from their defaults, as YAML values."""
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(type(section)):
        value = getattr(section, field.name)
        if not field.required and value == field.default:
            continue
        found[field.name] = _plain(value)
    return found


def _plain(value: object) -> object:
    match value:
        case Path():
            return str(value)
        case float():
            return _number(value)
        case str():
            return value
        case Sequence():
            return [_plain(each) for each in value]
        case _:
            return value


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
