"""What goes into one chat request: never more than fits, and always the whole message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isola_core.ports import Outgoing, PastTurn, QuotedContext
from isola_harnesses.llm_prompt import TooLong, build_prompt, estimate_tokens


def past(number: int, size: int) -> PastTurn:
    return PastTurn(f"d-{number}", f"{number} " + "q" * size, "a" * size, number)


@given(
    st.lists(st.integers(0, 400), max_size=20),
    st.text(max_size=300),
    st.lists(st.text(max_size=200), max_size=5),
    st.integers(256, 2000),
)
def test_a_request_stays_within_its_bound(
    sizes: list[int], text: str, memories: list[str], limit: int
) -> None:
    history = [past(number, size) for number, size in enumerate(sizes)]
    message = Outgoing("d", "m", text, QuotedContext(tuple(memories)))
    try:
        prompt = build_prompt("system", history, message, limit)
    except TooLong:
        assert estimate_tokens(text) > limit - 12
        return
    assert prompt.tokens <= limit
    assert sum(estimate_tokens(each["content"]) for each in prompt.messages) <= limit
    assert prompt.messages[-1]["content"].endswith(text)
    kept = [each["content"] for each in prompt.messages[1:-1] if each["role"] == "user"]
    newest = [turn.sent for turn in history][len(history) - len(kept) :]
    assert kept == newest
    assert len(prompt.messages) == 2 + 2 * len(kept)


def test_memories_give_way_to_the_message() -> None:
    context = QuotedContext(("m" * 400, "n" * 400), "briefing")
    prompt = build_prompt("", [], Outgoing("d", "m", "x" * 400, context), 300)
    assert prompt.memories_left_out == 1
    assert "m" * 400 in prompt.messages[-1]["content"]
    assert prompt.messages[-1]["content"].endswith("x" * 400)


def test_tokens_are_estimated_by_script() -> None:
    assert estimate_tokens("word " * 80) == 100
    assert estimate_tokens("词" * 150) == 100
