"""What commands print: harmless on any terminal, and aligned."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.errors import IsolaError
from isola_tui import cli
from isola_tui.cli.output import block, first_line, length, line, mapping_lines, table
from tests.tui.cli.conftest import Isola

ANY_TEXT = st.text(st.characters(), max_size=300)


@given(ANY_TEXT)
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    acting = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
    assert not acting.search(block(text))
    assert line(text).isprintable()
    assert "\n" not in first_line(text)


def test_a_block_loses_no_visible_text() -> None:
    text = "a [/red] b\r\n\tc\x1b[31m 回滚 \u202e\x9b2J d"
    assert block(text, "  ") == "  a [/red] b\n          c[31m 回滚 2J d"


def test_columns_are_aligned_by_cells() -> None:
    drawn = table(("A", "B"), [("账单", "x"), ("bill", "y"), ("é", "z")]).splitlines()
    assert drawn == ["A     B", "账单  x", "bill  y", "é     z"]


def test_facts_are_aligned() -> None:
    assert mapping_lines({"a": "1", "状态": "2"}) == "a     1\n状态  2"


@pytest.mark.parametrize(
    ("ms", "said"), [(400, "0.4 s"), (59_000, "59 s"), (245_000, "4:05"), (7_200_000, "2.0 h")]
)
def test_lengths_of_time(ms: int, said: str) -> None:
    assert length(ms) == said


def test_an_unexpected_error_is_one_line_without_a_traceback(
    isola: Isola, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("[/red]")

    monkeypatch.setattr(cli, "_load", fail)
    ran = isola("decisions")
    assert ran.code == 1
    assert ran.err.startswith("isola: a fault of isola: KeyError: '[/red]'")
    assert len(ran.err.splitlines()) == 1
    monkeypatch.setenv(cli.TRACEBACK_VARIABLE, "1")
    with pytest.raises(KeyError):
        isola("decisions")


def test_refusals_reach_json_with_code_and_details(isola: Isola) -> None:
    ran = isola("explain", "decision", "\x1b]0;x\x07", "--json")
    assert ran.json["error"]["code"] == "not_found"
    assert "\x1b" not in ran.out
    assert issubclass(IsolaError, Exception)
