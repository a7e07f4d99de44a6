"""Keys in the configuration: `keys: {correct: ctrl+k}` gives an act other keys.

Pure functions over bindings. What is wrong is named before the screen opens: an act or a key that
does not exist, a key that would only type, and one key for two acts that can be meant at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from textual.binding import Binding, BindingType
from textual.keys import Keys, format_key, key_to_character

Keymap = Mapping[str, tuple[str, ...]]

ALIASES: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+left_square_bracket": "escape"}
"""What a terminal sends for two keys alike."""

SWALLOWED: Final = {
    "ctrl+b": "tmux",
    "ctrl+a": "screen",
    "ctrl+s": "flow control",
    "ctrl+q": "flow control",
    "ctrl+space": "a Mac's input sources",
    "ctrl+circumflex_accent": "mosh",
    "ctrl+6": "mosh",
    "f10": "GNOME's terminal",
    "f11": "full screen",
    "f12": "a Mac",
}
"""Keys that do not always reach a program in a terminal, and who takes them."""

_ARROWS: Final = frozenset({"up", "down", "left", "right"})
_MODIFIERS: Final = frozenset({"ctrl", "alt", "shift", "super", "meta", "hyper"})
_SIGNS: Final = frozenset({"space", "underscore", "minus", "plus"})
_NAMES: Final = frozenset(
    each.value for each in Keys if "+" not in each.value and not each.value.startswith("<")
)


def keys_of(bindings: Iterable[BindingType], keymap: Keymap) -> dict[str, tuple[str, ...]]:
    """Every act's keys as they are bound: the configured ones, else its own."""
    found: dict[str, tuple[str, ...]] = {}
    for each in Binding.make_bindings(bindings):
        if each.id is not None:
            own = (*found.get(each.id, ()), each.key)
            found[each.id] = keymap.get(each.id, own)
    return found


def problems_of(keymap: Keymap, screens: Sequence[Sequence[BindingType]]) -> list[str]:
    """What is wrong with the configured keys; `screens` are the bindings that can meet."""
    known = {each.id for each in Binding.make_bindings(_all(screens)) if each.id}
    problems: list[str] = []
    for act, keys in keymap.items():
        if act not in known:
            close = get_close_matches(act, sorted(known), n=1)
            hint = f", did you mean {close[0]}?" if close else "."
            problems.append(f"keys.{act}: there is no such act{hint} docs/keys.md lists them")
        problems += [f"keys.{act}: {said}" for key in keys if (said := _wrong(key))]
    for bindings in screens:
        owners: dict[str, str] = {}
        for act, keys in keys_of(bindings, keymap).items():
            for key in keys:
                first = owners.setdefault(key, act)
                if first != act and (act in keymap or first in keymap):
                    problems.append(f"keys: {key} would mean both {first} and {act}")
    return list(dict.fromkeys(problems))


def key_label(key: str) -> str:
    """A key as it stands on the screen: `^r`, `esc`, `shift+tab`."""
    *modifiers, name = key.split("+")
    sign = name if name == "enter" else format_key(name)
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        sign = f"^{sign}"
    return "+".join([*modifiers, sign])


def swallowed_by(key: str) -> str:
    """Who may keep a key from the program, "" where nobody is known to."""
    if key in SWALLOWED:
        return SWALLOWED[key]
    *modifiers, name = key.split("+")
    if "alt" in modifiers:
        return "a Mac's terminal without meta"
    if set(modifiers) >= {"ctrl", "shift"} or (modifiers and name in ("enter", "backspace")):
        return "terminals that do not send it"
    return "a Mac's desktops" if modifiers == ["ctrl"] and name in _ARROWS else ""


def as_textual(keymap: Keymap) -> dict[str, str]:
    """The form that `App.set_keymap` takes."""
    return {act: ",".join(keys) for act, keys in keymap.items()}


def _all(screens: Sequence[Sequence[BindingType]]) -> list[BindingType]:
    return [each for bindings in screens for each in bindings]


def _wrong(key: str) -> str:
    if key in ALIASES:
        return f"{key} is {ALIASES[key]} for a terminal"
    *modifiers, name = key.split("+")
    sign = len(name) == 1 or name in _SIGNS or key_to_character(name) is not None
    if not (sign or name in _NAMES) or not set(modifiers) <= _MODIFIERS:
        return f"there is no key {key!r}; write ctrl+k, f5, alt+enter, pageup"
    if sign and not set(modifiers) - {"shift"}:
        return f"{key} types a letter; give it ctrl, alt or a function key"
    return ""
