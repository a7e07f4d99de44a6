"""The wire of a chat completion: bytes and fragments may be split anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isola_core.text import normalise_message
from isola_harnesses.llm_stream import EndpointFailure, ReplyText, SseDecoder


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n")).filter(bool), max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.data(),
)
def test_events_are_the_same_however_the_bytes_are_split(
    texts: list[str], end: bytes, data: st.DataObject
) -> None:
    body = b"\xef\xbb\xbf: a comment" + end + b"event: message" + end
    for text in texts:
        body += b"data: " + text.encode("utf-8", "replace") + end + b"id: 7" + end + end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    decoder = SseDecoder()
    found: list[str] = []
    for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        found += decoder.feed(body[start:stop])
    found += decoder.finish()
    assert found == [text.encode("utf-8", "replace").decode() for text in texts]


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n"])
def test_the_last_event_may_lack_its_empty_line(end: str) -> None:
    decoder = SseDecoder()
    assert [*decoder.feed(f"data:a\ndata: b{end}".encode()), *decoder.finish()] == ["a\nb"]


def test_an_event_without_end_is_refused() -> None:
    decoder = SseDecoder()
    for _ in range(8):
        assert decoder.feed(b"x" * 2**20) == []
    with pytest.raises(EndpointFailure, match="without end"):
        decoder.feed(b"x")


@given(st.text(st.characters() | st.sampled_from("\r\n\x1b\ud83d\ude42")), st.data())
def test_a_reply_is_the_same_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    reply = ReplyText()
    told = [
        reply.push(text[start:stop])
        for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]
    told.append(reply.finish())
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert "".join(told) == reply.whole == normalise_message(whole)
