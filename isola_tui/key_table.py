"""The one table of keys: help shows it as it is bound, `docs/keys.md` is written from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.binding import Binding, BindingType

from isola_tui.app import PALETTE
from isola_tui.bindings import DIALOGS, HOME
from isola_tui.keymap import SWALLOWED, key_label, keys_of, swallowed_by
from isola_tui.messages import Texts
from isola_tui.screens.acts import MESSAGE_ACTS
from isola_tui.screens.help import SHOWN
from isola_tui.screens.send_as import WAYS
from isola_tui.widgets.entry import Entry

HEAD: Final = """# Keys

Written by `scripts/keys-table` from the bindings; a test fails when it is out of date.

The keys of the first table act on the selected message, or on your newest one. `^` is Ctrl. A key
in (brackets) does not arrive everywhere; every act has another key, a letter in a list (`^o`, `^g`)
or its name in the palette (`^p`).

## Keys of your own

```yaml
keys:
  correct: ctrl+k            # the act's id below, and its key
  why: [f2, ctrl+x]          # or several; they replace the act's own
```

A key that two acts of one screen would have, an act or a key that does not exist, and a key that
only types a letter are named before the screen opens, and by `isola doctor`. `ctrl+i`, `ctrl+m` and
`ctrl+[` are Tab, Enter and Escape for a terminal.
"""


def keys_page(texts: Texts) -> str:
    """`docs/keys.md`."""
    home = keys_of(HOME, {})
    rows: list[tuple[str, ...]] = [
        (name, _labels(home[name]), texts(f"action.{name}"), also(name))
        for name in SHOWN
        if name in home
    ]
    rows += [
        (name, _labels(keys), _description(HOME, name), also(name))
        for name, keys in home.items()
        if name.startswith("pane_")
    ]
    editing = [
        (each, _labels(keys), _description(Entry.BINDINGS, each), "")
        for each, keys in keys_of(Entry.BINDINGS, {}).items()
        if each not in SHOWN
    ]
    dialogs = [
        (each, _labels(keys), _description(dialog.BINDINGS, each), "")
        for dialog in DIALOGS
        for each, keys in keys_of(dialog.BINDINGS, {}).items()
    ]
    taken = "\n".join(f"- `{key_label(key)}`: {who}" for key, who in SWALLOWED.items())
    return "\n".join(
        [
            HEAD,
            "## Acts\n",
            _table(("act", "keys", "what it does", "also"), rows),
            "\n## Editing in the entry\n",
            "From the first and last row of the text, Up and Down walk through what you sent.\n",
            _table(("act", "keys", "what it does", ""), editing),
            "\n## In dialogs\n",
            _table(("act", "keys", "what it does", ""), dialogs),
            "\n## Keys that do not always arrive\n",
            f"{taken}\n- `alt+…`: a Mac's terminal without meta",
            "- `ctrl+` with an arrow: a Mac's desktops; `shift+enter`, `ctrl+backspace` and"
            " `ctrl+shift+…`: terminals that do not send them",
            "",
        ]
    )


def also(name: str) -> str:
    """Where else an act is found."""
    places = []
    menu = next((each.letter for each in MESSAGE_ACTS if each.name == name), None)
    if menu is not None:
        places.append(f"`^o` `{menu}`")
    if name in WAYS:
        places.append(f"`^g` `{WAYS[name]}`")
    if name in PALETTE:
        places.append("`^p`")
    if name.startswith("pane_"):
        places.append(f"`{key_label(keys_of(HOME, {})['go_to'][0])}`")
    return " · ".join(places)


def _labels(keys: Iterable[str]) -> str:
    labels = []
    for key in dict.fromkeys(keys):
        label = f"`{key_label(key)}`"
        labels.append(f"({label})" if swallowed_by(key) else label)
    return " · ".join(labels)


def _description(bindings: Iterable[BindingType], name: str) -> str:
    found = (each for each in Binding.make_bindings(bindings) if each.id == name)
    return next(found).description


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), _row(["---"] * len(head))]
    return "\n".join([*lines, *(_row((f"`{name}`", *rest)) for name, *rest in rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
