"""Every text of the screen, one catalogue a language: `en.yaml`, `zh.yaml`.

Texts are addressed by dotted keys and filled with `str.format`. What is filled in is shown as it
is: nothing here is markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml

LANGUAGES: Final = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Texts:
    """One language's texts."""

    language: str
    table: Mapping[str, str]

    def __call__(self, key: str, /, **values: object) -> str:
        """The text of `key` with its places filled. Raises `KeyError` for an unknown key."""
        text = self.table[key]
        return text.format(**values) if values else text

    def count(self, key: str, count: int, /, **values: object) -> str:
        """The text of `key.one` or `key.other`, as `count` asks for; it may use `{count}`."""
        return self(f"{key}.{'one' if count == 1 else 'other'}", count=f"{count:,}", **values)


def language_of(wanted: str | None, env: Mapping[str, str]) -> str:
    """The language to show: the configured one, else the locale's, else English."""
    if wanted in LANGUAGES:
        return wanted
    locale = next((env[each] for each in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(each)), "")
    return "zh" if locale.lower().startswith("zh") else "en"


@cache
def load_texts(language: str) -> Texts:
    """The catalogue of one of `LANGUAGES`."""
    source = resources.files(__name__).joinpath(f"{language}.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Texts(language, _flat(yaml.load(source, loader), ""))  # noqa: S506 - a safe loader


def _flat(branch: Mapping[str, Any], prefix: str) -> dict[str, str]:
    table: dict[str, str] = {}
    for key, value in branch.items():
        if isinstance(value, Mapping):
            table |= _flat(value, f"{prefix}{key}.")
        else:
            table[f"{prefix}{key}"] = str(value)
    return table
