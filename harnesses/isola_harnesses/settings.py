"""Reads a harness's settings into its own type, naming every wrong key and value at once."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar, get_type_hints

import msgspec

from isola_core.errors import ConfigError

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


def read_settings(kind: type[_Settings], settings: Mapping[str, object], what: str) -> _Settings:
    """`settings` as a `kind`; `what` names the harness in the error.

    A setting that is None counts as not given. Raises `ConfigError` with one problem per wrong or
    missing key; a free value is never repeated in it, since it may be a secret.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    problems = [_unknown(key, list(fields)) for key in given if key not in fields]
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name in given:
            try:
                values[name] = msgspec.convert(given[name], hints[name])
            except msgspec.ValidationError as error:
                problems.append(f"{name}: {error}")
        elif field.required:
            problems.append(f"{name}: it is needed and missing")
    if not problems:
        try:
            return kind(**values)
        except ValueError as error:
            problems.append(str(error))
    listed = "; ".join(problems)
    raise ConfigError(f"The settings of {what} cannot be used: {listed}.", problems=problems)


def _unknown(key: str, allowed: list[str]) -> str:
    close = get_close_matches(key, allowed, n=1)
    hint = f"did you mean {close[0]}?" if close else f"allowed are {', '.join(allowed) or 'none'}"
    return f"{key}: there is no such setting, {hint}"
