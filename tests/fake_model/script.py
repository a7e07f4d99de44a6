"""What the fake model says and how it misbehaves.

Magic in the last user text:

    [[tool:NAME {json}]]   a call of that tool (`namespace/NAME` where the protocol has namespaces)
    [[sleep:SECONDS]]      wait, then answer as if it were not there
    [[lines:N]]            N numbered lines
    [[error:STATUS]]       that HTTP status, in the protocol's own form of an error

Anything else: `REPLY: <last user text>`. After a tool's result: `TOOL-SAID: <result>`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from tests.fake_model.reading import Json

_TOOL = re.compile(r"\[\[tool:([^\s\]]+)\s*(\{.*\})?\s*\]\]", re.S)
_SLEEP = re.compile(r"\[\[sleep:(\d+(?:\.\d+)?)\]\]")
_LINES = re.compile(r"\[\[lines:(\d+)\]\]")
_ERROR = re.compile(r"\[\[error:(\d{3})\]\]")


class Behaviour(StrEnum):
    """How the server treats model requests; set by a test."""

    ANSWER = "answer"
    REFUSE = "refuse"
    """The connection is closed without a byte."""
    STALL = "stall"
    """The request is read and never answered."""
    STALL_MIDWAY = "stall-midway"
    """Half of the answer, then nothing; the connection stays open."""
    CUT = "cut"
    """Half of the answer, then the connection is closed."""
    MALFORMED = "malformed"
    """A stream (or body) that is not JSON."""
    EMPTY = "empty"
    """Well formed, and nothing in it: no choices, no content."""
    SLOW = "slow"
    """The whole answer, a few bytes at a time."""
    HTML = "html"
    """Status 200 and a web page."""
    REDIRECT = "redirect"
    """307 to another path of this server."""
    NO_DONE = "no-done"
    """The stream ends after the finish reason, without its last mark."""
    LINGER = "linger"
    """The whole answer, and then the connection stays open."""
    PLAIN = "plain"
    """Not streamed, although that was asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived. `user` and `tool_result` are what the agent's noise hid."""

    number: int
    method: str
    path: str
    kind: str
    headers: dict[str, str]
    body: Json
    raw: bytes
    user: str = ""
    tool_result: str | None = None


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with this text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """Answer with a call of a tool."""

    name: str
    arguments: Json
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an HTTP error."""

    status: int
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()


Answer = Say | CallTool | Fail


def pause_before(request: Request) -> float:
    """Seconds to wait before this request is answered."""
    found = _SLEEP.search(request.user) if request.tool_result is None else None
    return float(found.group(1)) if found else 0.0


def answer_to(request: Request) -> Answer:
    """What the fake model says to a request."""
    if request.tool_result is not None:
        return Say(f"TOOL-SAID: {request.tool_result.strip()}")
    if found := _ERROR.search(request.user):
        return Fail(int(found.group(1)))
    if found := _TOOL.search(request.user):
        namespace, _, name = found.group(1).rpartition("/")
        arguments = json.loads(found.group(2) or "{}")
        return CallTool(name, arguments, namespace)
    if found := _LINES.search(request.user):
        return Say("\n".join(f"line {number}" for number in range(1, int(found.group(1)) + 1)))
    return Say(f"REPLY: {request.user}")
