"""Reads a chat completion off the wire: server-sent events, their JSON, and the reply's text.

Nothing here does I/O. Bytes may be split anywhere, in the middle of a UTF-8 sequence, of a line end
or of a surrogate pair; endpoints leave out what they like. What is not a whole answer raises
`EndpointFailure`, so that a fragment can never pass for a reply.
"""

from __future__ import annotations

import json
import re
from typing import Final

from isola_core.ports import FailureKind
from isola_core.text import is_blank, normalise_message, safe_label

MAX_EVENT: Final = 8 * 2**20
"""Bytes of one event; a real one has a few hundred."""

MAX_REPLY: Final = 8 * 2**20
"""Characters of one reply."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
_BOM: Final = b"\xef\xbb\xbf"


class EndpointFailure(Exception):
    """The endpoint gave no whole answer. `reason` is a sentence about it, `advice` what to do."""

    def __init__(
        self, reason: str, advice: str = "", kind: FailureKind = FailureKind.ERROR, **facts: object
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.kind = kind
        self.facts = facts


class SseDecoder:
    """Server-sent events out of bytes in any pieces: the `data` of each event."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0
        self._data: list[str] = []
        self._size = 0
        self._first = True

    def feed(self, chunk: bytes) -> list[str]:
        """The events that `chunk` completes."""
        self._buffer += chunk
        events: list[str] = []
        start = 0
        while found := _LINE_END.search(self._buffer, max(start, self._scanned)):
            self._line(bytes(self._buffer[start : found.start()]), events)
            start = found.end()
        del self._buffer[:start]
        self._scanned = max(0, len(self._buffer) - 1)
        if len(self._buffer) + self._size > MAX_EVENT:
            raise EndpointFailure("it sent an event without end", "Is that a model endpoint?")
        return events

    def finish(self) -> list[str]:
        """The stream has ended: the event that lacks only its empty line, if there is one."""
        events: list[str] = []
        if self._buffer:
            self._line(bytes(self._buffer).removesuffix(b"\r"), events)
        self._line(b"", events)
        self._buffer.clear()
        return events

    def _line(self, line: bytes, events: list[str]) -> None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            if self._data:
                events.append("\n".join(self._data))
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._size += len(value)
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))


class ReplyText:
    """A reply out of fragments, made safe to store and show.

    Fragments that were cut inside a line end or a surrogate pair are put together first, so the
    pieces that come out always add up to the whole.
    """

    def __init__(self) -> None:
        self._held = ""
        self._pieces: list[str] = []
        self._length = 0

    def push(self, fragment: str) -> str:
        """The safe text that can be shown now; it may lag behind by one character."""
        text = self._held + fragment
        self._held = ""
        if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff"):
            text, self._held = text[:-1], text[-1]
        return self._keep(text)

    def finish(self) -> str:
        """What was held back at the end."""
        text, self._held = self._held, ""
        return self._keep(text)

    @property
    def whole(self) -> str:
        return "".join(self._pieces)

    def _keep(self, text: str) -> str:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        clean = normalise_message(joined)
        self._length += len(clean)
        if self._length > MAX_REPLY:
            raise EndpointFailure("its reply has no end", "Nothing of it was kept.")
        if clean:
            self._pieces.append(clean)
        return clean


class Completion:
    """One answer as its chunks come in."""

    def __init__(self) -> None:
        self.reply = ReplyText()
        self.id = ""
        self.model = ""
        self.finish_reason = ""
        self.usage: dict[str, int] = {}
        self.done = False
        """The stream said that it is complete; more bytes mean nothing."""
        self._thought = False
        self._called = False

    def take(self, data: str) -> str:
        """One event's data, or a whole plain answer; returns the text to show for it."""
        if data.strip() == "[DONE]":
            self.done = True
            return ""
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise EndpointFailure(
                "it sent something that is not a chat completion",
                "Check that base_url names an OpenAI-compatible endpoint.",
            )
        if error := chunk.get("error"):
            raise _error_in_stream(error)
        self._note(chunk)
        choices = chunk.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        return self._choice(first) if isinstance(first, dict) else ""

    def end(self) -> str:
        """The connection is over: is the answer whole? Returns the text still to show."""
        if not self.done and not self.finish_reason:
            raise EndpointFailure(
                "it closed the connection in the middle of its answer",
                "Nothing of it was kept. Send the message again.",
                FailureKind.UNREACHABLE,
            )
        tail = self.reply.finish()
        if self.finish_reason == "content_filter":
            raise EndpointFailure("its content filter stopped the answer", "Say it differently.")
        if is_blank(self.reply.whole):
            raise self._empty()
        return tail

    def _empty(self) -> EndpointFailure:
        if self._called:
            return EndpointFailure(
                "it asked for a tool, and this backend offers none", "Use another model."
            )
        if self._thought:
            return EndpointFailure(
                f"it thought and then said nothing (finish reason: {self.finish_reason or 'none'})",
                "Give the model more tokens, or send the message again.",
            )
        return EndpointFailure("its answer is empty", "Send the message again.")

    def _note(self, chunk: dict[str, object]) -> None:
        for name in ("id", "model"):
            value = chunk.get(name)
            if isinstance(value, str) and not getattr(self, name):
                setattr(self, name, safe_label(value, 200))
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.usage = {str(key): value for key, value in usage.items() if isinstance(value, int)}

    def _choice(self, choice: dict[str, object]) -> str:
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish_reason = safe_label(finish, 40)
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        self._called = self._called or bool(delta.get("tool_calls"))
        self._thought = self._thought or bool(
            delta.get("reasoning_content") or delta.get("reasoning")
        )
        return self.reply.push(_text(delta.get("content")))


def _text(content: object) -> str:
    """A delta's content: a string, or (some endpoints) a list of text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [each.get("text") for each in content if isinstance(each, dict)]
    return "".join(part for part in parts if isinstance(part, str))


def error_message(body: bytes) -> str:
    """What the endpoint itself says about an error, as one short line; "" if it says nothing."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return _message_of(found.get("error", found)) if isinstance(found, dict) else ""


def _message_of(error: object) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error.get("error")
    return safe_label(error, 300) if isinstance(error, str) else ""


def _error_in_stream(error: object) -> EndpointFailure:
    said = _message_of(error)
    code = error.get("code") if isinstance(error, dict) else None
    kind = FailureKind.RATE_LIMITED if code in (429, "429", "rate_limit_exceeded") else None
    return EndpointFailure(
        "it gave an error instead of an answer" + (f": {said}" if said else ""),
        "Send the message again.",
        kind or FailureKind.ERROR,
    )


def refused(status: int, body: bytes, retry_after: str = "") -> EndpointFailure:
    """An answer that is not 200, with what a person can do about it."""
    said = error_message(body)
    reason = f"it answered {status}" + (f": {said}" if said else "")
    match status:
        case 401 | 403:
            advice = "Check the key in the variable that api_key_env names."
            return EndpointFailure(reason, advice, FailureKind.AUTH_EXPIRED, status=status)
        case 402:
            return EndpointFailure(reason, "The account has no credit left.", status=status)
        case 429:
            wait = f" Try again in {retry_after} s." if retry_after.isdigit() else ""
            facts = {"retry_after_s": int(retry_after)} if retry_after.isdigit() else {}
            advice = f"Too many requests, or the quota is used up.{wait}"
            return EndpointFailure(reason, advice, FailureKind.RATE_LIMITED, status=status, **facts)
        case 404 | 405:
            advice = "Check base_url (it usually ends in /v1) and model."
            return EndpointFailure(reason, advice, status=status)
        case 400 | 413 | 422:
            advice = "Check model, and max_context_tokens against what the model takes."
            return EndpointFailure(reason, advice, status=status)
        case 408 | 504:
            advice = "Send the message again."
            return EndpointFailure(reason, advice, FailureKind.TIMED_OUT, status=status)
        case 502 | 503:
            advice = "The service is not there right now. Send the message again later."
            return EndpointFailure(reason, advice, FailureKind.UNREACHABLE, status=status)
        case _ if 300 <= status < 400:
            advice = "Redirects are not followed: set base_url to the final address."
            return EndpointFailure(reason, advice, status=status)
        case _:
            return EndpointFailure(reason, "Send the message again later.", status=status)
