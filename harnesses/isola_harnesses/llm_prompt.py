"""What goes into one chat request: system prompt, as much history as fits, context, message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from isola_core.ports import Outgoing, PastTurn, QuotedContext
from isola_harnesses.context import render

MESSAGE_OVERHEAD: Final = 4
"""Tokens around each message of a request: role and separators."""

_WIDE: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class TooLong(Exception):
    """The message itself does not fit; `needed` and `limit` are tokens by our estimate."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(f"{needed} of {limit} tokens")
        self.needed = needed
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request's messages, and what was left out to make them fit."""

    messages: tuple[dict[str, str], ...]
    tokens: int
    turns: int
    turns_left_out: int
    memories_left_out: int


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: 4 bytes each, 1.5 characters each for Chinese and kin."""
    wide = len(_WIDE.findall(text))
    other = len(_WIDE.sub("", text).encode("utf-8", "replace"))
    return ceil(wide / 1.5 + other / 4)


def build_prompt(system: str, history: Sequence[PastTurn], message: Outgoing, limit: int) -> Prompt:
    """The request for `message` in at most `limit` estimated tokens.

    The message is always whole. Of the context the last memories go first, then the briefing; of
    the history the oldest turns, whole ones only. Raises `TooLong` if the message does not fit.
    """
    fixed = (estimate_tokens(system) + MESSAGE_OVERHEAD) if system else 0
    text, context = message.text, message.context
    while (
        used := fixed + estimate_tokens(said := render(context, text)) + MESSAGE_OVERHEAD
    ) > limit:
        if context == QuotedContext():
            raise TooLong(used, limit)
        context = _less(context)
    kept: list[PastTurn] = []
    for turn in reversed(history):
        cost = estimate_tokens(turn.sent) + estimate_tokens(turn.reply) + 2 * MESSAGE_OVERHEAD
        if used + cost > limit:
            break
        used += cost
        kept.append(turn)
    messages = [{"role": "system", "content": system}] if system else []
    for turn in reversed(kept):
        messages.append({"role": "user", "content": turn.sent})
        messages.append({"role": "assistant", "content": turn.reply})
    messages.append({"role": "user", "content": said})
    return Prompt(
        messages=tuple(messages),
        tokens=used,
        turns=len(kept),
        turns_left_out=len(history) - len(kept),
        memories_left_out=len(message.context.memories) - len(context.memories),
    )


def _less(context: QuotedContext) -> QuotedContext:
    """The context without its least relevant memory, or at last without its briefing."""
    if context.memories:
        return QuotedContext(context.memories[:-1], context.briefing)
    return QuotedContext()
