"""The catalogues: complete in every language, with the same places to fill."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import isola_tui
from isola_tui.messages import LANGUAGES, language_of, load_texts

SOURCE = Path(isola_tui.__file__).parent
KEY = re.compile(r"""(?:texts|_say|_hint|count)\(\s*f?"([a-z_]+(?:\.[a-z_]+)+)\"""")


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_places(language: str) -> None:
    english, other = load_texts("en").table, load_texts(language).table
    assert set(other) == set(english)
    for key, text in english.items():
        if not key.endswith(".one"):
            assert places(other[key]) == places(text), key


def test_every_text_that_the_source_names_exists() -> None:
    table = load_texts("en").table
    named = {
        match[1]
        for file in SOURCE.rglob("*.py")
        if "cli" not in file.parts
        for match in KEY.finditer(file.read_text("utf-8"))
    }
    missing = {each for each in named if each not in table and f"{each}.other" not in table}
    assert len(named) > 40
    assert not missing


@pytest.mark.parametrize(
    ("wanted", "env", "language"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "de_DE.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {}, "en"),
    ],
)
def test_the_language_follows_config_then_locale(
    wanted: str | None, env: dict[str, str], language: str
) -> None:
    assert language_of(wanted, env) == language
