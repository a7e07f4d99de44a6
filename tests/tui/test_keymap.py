"""Keys of one's own: what the configuration may say, that it works, and that the table is true."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from textual.screen import ModalScreen

import isola_tui.screens
from isola_tui.bindings import DIALOGS, HOME, SCREENS
from isola_tui.key_table import also, keys_page
from isola_tui.keymap import keys_of, problems_of, swallowed_by
from isola_tui.messages import load_texts
from tests.tui.stage import on_stage, opened

ROOT = Path(__file__).parent.parent.parent

CONVENIENCES = {
    *("entry_redo", "entry_delete_word_right", "entry_word_left", "entry_word_right"),
}
"""What other keys of the entry can do in a few presses."""


def test_the_page_of_keys_is_up_to_date() -> None:
    written = (ROOT / "docs" / "keys.md").read_text("utf-8")
    assert written == keys_page(load_texts("en")), "run scripts/keys-table"


def test_every_dialog_is_in_the_list_that_keys_are_checked_against() -> None:
    for module in pkgutil.iter_modules(isola_tui.screens.__path__):
        importlib.import_module(f"isola_tui.screens.{module.name}")
    ours: set[type] = set()
    waiting: list[type] = [ModalScreen]
    while waiting:
        below: list[type] = type.__subclasses__(waiting.pop())
        for each in below:
            waiting.append(each)
            if each.__module__.startswith("isola_tui.") and "BINDINGS" in vars(each):
                ours.add(each)
    assert ours == set(DIALOGS)


def test_every_act_has_a_key_that_arrives_or_stands_in_a_list() -> None:
    for name, keys in keys_of(HOME, {}).items():
        if name in CONVENIENCES:
            continue
        assert also(name) or any(not swallowed_by(key) for key in keys), name
    for way in ("menu", "palette", "send_as"):
        assert any(not swallowed_by(key) for key in keys_of(HOME, {})[way])


@pytest.mark.parametrize("key", ["ctrl+b", "ctrl+a", "ctrl+q", "f12", "alt+r", "shift+enter"])
def test_keys_that_do_not_arrive_are_known(key: str) -> None:
    assert swallowed_by(key)


@pytest.mark.parametrize(
    ("keymap", "said"),
    [
        ({"corect": ("ctrl+k",)}, "keys.corect: there is no such act, did you mean correct?"),
        ({"why": ("ctrl+r",)}, "keys: ctrl+r would mean both correct and why"),
        ({"why": ("ctrl+x",), "undo": ("ctrl+x",)}, "ctrl+x would mean both"),
        ({"why": ("f99",)}, "keys.why: there is no key 'f99'"),
        ({"why": ("strg+k",)}, "there is no key 'strg+k'"),
        ({"why": ("w",)}, "keys.why: w types a letter"),
        ({"why": ("question_mark",)}, "types a letter"),
        ({"why": ("ctrl+i",)}, "ctrl+i is tab for a terminal"),
        ({"choose_up": ("ctrl+q",)}, "ctrl+q would mean both"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(keymap: Mapping[str, tuple[str, ...]], said: str) -> None:
    assert said in "\n".join(problems_of(keymap, SCREENS))


@pytest.mark.parametrize(
    "keymap",
    [
        {},
        {"correct": ("ctrl+x",), "entry_cut": ("f11",)},
        {"send": ("ctrl+j",), "newline": ("enter",)},
        {"why": ("f2", "alt+w")},
    ],
)
def test_what_is_right_is_let_pass(keymap: Mapping[str, tuple[str, ...]]) -> None:
    assert problems_of(keymap, (HOME,)) == []


async def test_a_configured_key_replaces_the_acts_own(tmp_path: Path) -> None:
    config = "keys:\n  why: [ctrl+x, f2]\n  entry_cut: f11\n  send: ctrl+j\n  newline: enter\n"
    async with (
        opened(tmp_path / "home", config=config) as runtime,
        on_stage(runtime) as stage,
    ):
        await stage.type("the billing run")
        await stage.pilot.press("enter", "x", "ctrl+j")
        await stage.until(lambda: stage.home.board.decisions)
        assert stage.newest.message.text == "the billing run\nx"
        assert stage.home.presentation.keys["why"] == "^x"
        await stage.pilot.press("ctrl+x")
        await stage.until(lambda: stage.app.screen is not stage.home)
        await stage.pilot.press("escape", "f1")
        await stage.until(lambda: "^j" in stage.screen_text)
