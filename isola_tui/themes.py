"""Themes: dark, light, the terminal's own 16 colours, and no colours at all.

`theme:` in the configuration takes one of `OWN` or the name of any theme of Textual's. Where the
environment has NO_COLOR nothing is coloured: glyphs, words and bold tell the states apart.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from textual.theme import BUILTIN_THEMES

OWN: Final = {"dark": "textual-dark", "light": "textual-light", "ansi": "ansi-dark"}
"""Short names, and the themes of Textual's that they stand for."""


def theme_of(name: str | None) -> str:
    """The theme of Textual's for a configured name; None is the dark one."""
    return OWN.get(name or "dark", name or "dark")


def theme_problem(name: str | None) -> str:
    """What is wrong with a configured name, "" where nothing is."""
    if name is None or name in OWN or name in BUILTIN_THEMES:
        return ""
    known = [*OWN, *BUILTIN_THEMES]
    close = get_close_matches(name, known, n=1)
    hint = f", did you mean {close[0]}?" if close else "."
    return f"theme: there is no theme {name!r}{hint} Known: {', '.join(known)}"
