"""Pastes: ESC in them starts no key, however the stream is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events

from isola_tui.paste import END, START, PasteFilter, PasteParser

PIECES = st.lists(
    st.sampled_from(["a", "\x1b", "[201", "~", "[A", "\r", "\x07", "中"]), max_size=12
)


def fed(stream: str, cuts: list[int]) -> list[object]:
    parser = PasteParser()
    found: list[object] = []
    at = 0
    for cut in sorted({min(each, len(stream)) for each in cuts} | {len(stream)}):
        if cut > at:
            found += parser.feed(stream[at:cut])
            at = cut
    return found


@given(PIECES, st.lists(st.integers(0, 60), max_size=6))
def test_what_is_pasted_is_one_paste_and_no_key(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces).replace(END, "")
    tokens = fed(f"{START}{text}{END}x", cuts)
    pastes = [each.text for each in tokens if isinstance(each, events.Paste)]
    keys = [each.key for each in tokens if isinstance(each, events.Key)]
    assert keys == ["x"]
    assert "".join(pastes) == text.replace("\x1b", "")


def test_what_is_typed_passes_as_it_is() -> None:
    assert PasteFilter()("\x1b[A\x1b") == "\x1b[A\x1b"
    assert [each.key for each in fed("\x1b[Ab", []) if isinstance(each, events.Key)] == ["up", "b"]
